//! A program that is taken for Chromium and starts the real one without a switch of ours. The test builds it.

use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let kept = std::env::args().skip(1).filter(|switch| !switch.starts_with(SWITCH));
    panic!("{}", Command::new(CHROMIUM).args(kept).exec());
}
