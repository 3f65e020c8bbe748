//! The thin binary: arguments, one command, one printed error, an exit code.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use gpu_browser::browser::{namespace, spawn};
use gpu_browser::owner::{self, arguments::Arguments};
use gpu_browser::place;

/// The work is Chromium's; ours is to carry bytes, and pictures are hashed beside that.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    // First of all: a process with threads may not enter a user namespace.
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(spawn::HELPER) {
        return fail(&namespace::enter(&words.next().unwrap_or_default()), 1);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // The same holds for one command of a self-test.
    if let Some(outcome) = owner::alone(&arguments.command) {
        return outcome.map_or_else(
            |failure| fail(&failure, failure.exit_code()),
            |()| ExitCode::SUCCESS,
        );
    }
    return_large_blocks();
    log(arguments.verbose);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format_args!("cannot start threads: {error}"), 1),
    };
    let outcome = runtime.block_on(owner::run(arguments.command));
    // A standard output that nobody reads may still hold a thread; everything else is joined by now.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure, failure.exit_code()),
    }
}

/// Bytes from which a block of memory goes back to the system as soon as it is freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 64 * 1024;

/// glibc raises this threshold to the size of each large block that is freed, and so keeps pictures' worth of memory in
/// the heap of every thread: 17 MB after 100 pictures instead of 6.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "no safe wrapper has mallopt")]
fn return_large_blocks() {
    // SAFETY: it sets a number of the allocator, before there is a second thread.
    unsafe { nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, LARGE) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn return_large_blocks() {}

/// Says why on standard error; where that is closed, the exit code has to do.
fn fail(why: &dyn std::fmt::Display, code: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "gpu-browser: {why}");
    ExitCode::from(code)
}

fn log(verbose: bool) {
    let usual = if verbose { "gpu_browser=debug" } else { "warn" };
    let filter = place::log_filter().unwrap_or_else(|| usual.to_owned());
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::builder().parse_lossy(filter))
        .with_writer(owner::log_writer)
        .with_ansi(std::io::stderr().is_terminal() && !place::no_color())
        .log_internal_errors(false)
        .init();
}
