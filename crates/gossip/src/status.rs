//! The value of STATUS_WITH_PORT: a word, followed by its arguments behind commas.

use internode::payload::gossip::{ApplicationState, EndpointState};

/// The part that a node takes in its ring, as it tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// The node is fetching its data; writes go to it too.
    Boot,
    /// The node replaces another one: the address of that node.
    BootReplace(String),
    /// The node owns its tokens.
    Normal,
    /// The node hands its data to others.
    Leaving,
    /// The node has left; the time at which it may be forgotten, milliseconds since 1970.
    Left(Option<i64>),
    /// The node is about to own this token instead of its own.
    Moving(String),
    /// The node is being removed by others.
    Removing,
    /// The node was removed; the time at which it may be forgotten, milliseconds since 1970.
    Removed(Option<i64>),
    /// The node replaces another one at the same address, or stands aside.
    Hibernate,
    /// The node was stopped on purpose. It owns its tokens all the same.
    Shutdown,
    /// A status with another word.
    Other(String),
}

impl Status {
    /// The status in a state. `None`: the state has none yet.
    pub fn of(state: &EndpointState) -> Option<Self> {
        let value = state.value(ApplicationState::StatusWithPort).or_else(|| state.value(ApplicationState::Status));
        value.map(Self::parse)
    }

    /// The status of a text.
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split(',');
        let word = parts.next().unwrap_or_default();
        let second = parts.next().unwrap_or_default();
        let expiry = || parts.next().and_then(|millis| millis.parse().ok());
        match word {
            "BOOT" => Self::Boot,
            "BOOT_REPLACE" => Self::BootReplace(second.to_owned()),
            "NORMAL" => Self::Normal,
            "LEAVING" => Self::Leaving,
            "LEFT" => Self::Left({ expiry }()),
            "MOVING" => Self::Moving(second.to_owned()),
            "removing" => Self::Removing,
            "removed" => Self::Removed({ expiry }()),
            "hibernate" => Self::Hibernate,
            "shutdown" => Self::Shutdown,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether a node with this status is never marked alive.
    pub fn is_dead(&self) -> bool {
        matches!(self, Self::Removing | Self::Removed(_) | Self::Left(_) | Self::Hibernate)
    }

    /// Whether the node is on its way in: its states are applied after all others.
    pub fn is_joining(&self) -> bool {
        matches!(self, Self::Boot | Self::BootReplace(_))
    }

    /// Whether the node owns its tokens.
    pub fn owns_tokens(&self) -> bool {
        matches!(
            self,
            Self::Normal | Self::Leaving | Self::Moving(_) | Self::Shutdown | Self::Removing | Self::Hibernate
        )
    }

    /// When the node may be forgotten, milliseconds since 1970; None: the status does not say.
    pub fn expiry(&self) -> Option<i64> {
        match self {
            Self::Left(expiry) | Self::Removed(expiry) => *expiry,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_cassandra() {
        for (text, status) in [
            ("BOOT,-12", Status::Boot),
            ("BOOT_REPLACE,127.0.0.9:7000", Status::BootReplace("127.0.0.9:7000".to_owned())),
            ("NORMAL,-1542805685535672584", Status::Normal),
            ("LEAVING,3", Status::Leaving),
            ("LEFT,3,1795376395000", Status::Left(Some(1_795_376_395_000))),
            ("MOVING,5", Status::Moving("5".to_owned())),
            ("removing,ed64cdbd-acb5-4805-b462-fa598e25b9f6", Status::Removing),
            ("removed,ed64cdbd-acb5-4805-b462-fa598e25b9f6,17", Status::Removed(Some(17))),
            ("hibernate,true", Status::Hibernate),
            ("shutdown,true", Status::Shutdown),
            ("", Status::Other(String::new())),
        ] {
            assert_eq!(Status::parse(text), status);
        }
        assert!(Status::parse("LEFT,3,x").is_dead() && !Status::parse("shutdown,true").is_dead());
        assert_eq!(Status::parse("LEFT,3,17").expiry(), Some(17));
    }
}
