//! The caches of what was read of `system_auth`. A node alone has none: it follows each write.

use std::time::Duration;

use admin::verbs::{AuthCacheChange, AuthCacheInfo, AuthCacheKind, GetAuthCache};
use admin::{Functions, Result};
use config::AuthCache;

use super::{NodeAdmin, invalid};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(settings).add(change);
}

/// The settings in force; where there are no such caches those of the configuration.
fn settings(admin: &NodeAdmin, request: &GetAuthCache) -> Result<AuthCacheInfo> {
    let in_force = admin.services.auth.as_ref().and_then(|auth| auth.cache_settings(request.cache));
    let configured = &admin.services.config.auth;
    let of_configuration = match request.cache {
        AuthCacheKind::Credentials => configured.credentials,
        AuthCacheKind::Permissions => configured.permissions,
        AuthCacheKind::Roles | AuthCacheKind::NetworkPermissions => configured.roles,
    };
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let cache = in_force.unwrap_or(of_configuration);
    Ok(AuthCacheInfo {
        validity_millis: millis(cache.validity),
        update_interval_millis: millis(cache.renewal_age()),
        entries_max: cache.entries_max,
        updates_actively: cache.updates_actively,
    })
}

fn change(admin: &NodeAdmin, change: &AuthCacheChange) -> Result<()> {
    let auth = admin.services.auth.as_ref();
    match change {
        AuthCacheChange::Invalidate(cache, role) => {
            if let Some(auth) = auth {
                auth.invalidate(*cache, role.as_deref());
            }
            Ok(())
        }
        AuthCacheChange::Set { cache, validity_millis, update_interval_millis, entries_max } => {
            let Some((auth, before)) = auth.and_then(|auth| Some((auth, auth.cache_settings(*cache)?))) else {
                return invalid("this node keeps nothing of system_auth: nobody logs in, or it is alone".to_owned());
            };
            let update_interval = match update_interval_millis {
                None => before.update_interval,
                // of -1 there is no such number: the interval is not set any more
                Some(millis) => u64::try_from(*millis).ok().map(Duration::from_millis),
            };
            auth.set_cache(
                *cache,
                AuthCache {
                    validity: validity_millis.map_or(before.validity, Duration::from_millis),
                    update_interval,
                    entries_max: entries_max.unwrap_or(before.entries_max),
                    ..before
                },
            );
            Ok(())
        }
    }
}
