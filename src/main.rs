//! The thin binary: arguments, one command, one printed error, an exit code.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
