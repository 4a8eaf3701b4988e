//! How far a long verb is, on the terminal of standard error: bytes, rate, time left. Nothing is
//! shown if standard error is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Bytes of progress after which the bar is drawn again; drawing asks for the clock.
const STEP: u64 = 1024 * 1024;

/// A bar over a number of bytes. Dropping it clears the bar from the terminal.
pub struct Progress {
    bar: ProgressBar,
    shown: u64,
}

impl Progress {
    /// A bar over this number of bytes.
    pub fn new(what: &str, bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(4));
        let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self { bar, shown: 0 }
    }

    /// Tells how many bytes are done.
    #[inline]
    pub fn at(&mut self, bytes: u64) {
        if bytes.wrapping_sub(self.shown) >= STEP {
            self.shown = bytes;
            self.bar.set_position(bytes);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
