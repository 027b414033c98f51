//! The `tidegate` program.
//!
//! It reads flags, puts the library's parts together, and says what happens: answers on standard output, everything
//! else on standard error. Exit codes: 0 done, 1 it failed while running, 2 it was called wrongly, 3 something is not
//! as `--expect` or `--fail-if` want it, 130 it was interrupted (a proxy: twice).

#![forbid(unsafe_code)]

mod announce;
mod audit;
mod call_flags;
mod callers;
mod certificates;
mod check;
mod config_file;
mod explain;
mod file_watch;
mod flags;
mod imported;
mod limitador;
mod listening;
mod load;
mod log_flags;
mod picture;
mod policy_flags;
mod proxy;
mod reload;
mod replay;
mod rule_files;
mod sample;
mod say;
mod screen;
mod serve;
mod settings;
mod signals;
mod simulate;
mod state_file;
mod store;
mod trust_files;
mod tune;
mod watching;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use mimalloc::MiMalloc;

/// A request's buffers are of sizes that the system's allocator does not keep at hand.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Limits how often callers may knock: exactly, quickly, and with a polite 429.
#[derive(Parser)]
#[command(name = "tidegate", version, propagate_version = true, max_term_width = 100, after_help = EXIT_CODES)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed while running, 2 called wrongly, 3 not as a flag expects, 130 interrupted.
Try it: `tidegate proxy --limit 3/min`, then `curl -i http://127.0.0.1:8080/` four times.";

#[derive(Subcommand)]
enum Command {
    Proxy(Box<proxy::Proxy>),
    Serve(Box<serve::Serve>),
    Explain(explain::Explain),
    Check(Box<check::Check>),
    Simulate(Box<simulate::Simulate>),
    Replay(Box<replay::Replay>),
    Tune(Box<tune::Tune>),
    Load(Box<load::Load>),
    Audit(Box<audit::Audit>),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, in roff.
    Man,
}

fn main() -> ExitCode {
    let program = Program::parse();
    match program.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(&format_args!("{error:#}"));
            code(&error)
        }
    }
}

/// The exit code of an error.
fn code(error: &anyhow::Error) -> ExitCode {
    if error.is::<flags::Wrong>() {
        ExitCode::from(2)
    } else if error.is::<flags::Fails>() {
        ExitCode::from(3)
    } else if error.is::<flags::Interrupted>() {
        ExitCode::from(signals::INTERRUPTED)
    } else {
        ExitCode::FAILURE
    }
}

impl Command {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Proxy(proxy) => proxy.run(),
            Self::Serve(serve) => serve.run(),
            Self::Explain(explain) => explain.run(),
            Self::Check(check) => check.run(),
            Self::Simulate(simulate) => simulate.run(),
            Self::Replay(replay) => replay.run(),
            Self::Tune(tune) => tune.run(),
            Self::Load(load) => load.run(),
            Self::Audit(audit) => audit.run(),
            Self::Completions { shell } => completions(shell),
            Self::Man => manual(),
        }
    }
}

fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Program::command(), "tidegate", &mut script);
    say::answer(&script)
}

/// Prints the pages of the program and of each command, one after the other.
fn manual() -> anyhow::Result<()> {
    let mut program = Program::command();
    program.build();
    let mut pages = Vec::new();
    clap_mangen::Man::new(program.clone()).render(&mut pages)?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let name: &'static str = Box::leak(format!("tidegate-{}", command.get_name()).into_boxed_str());
        clap_mangen::Man::new(command.clone().name(name)).render(&mut pages)?;
    }
    say::answer(&pages)
}

/// Did the reader of our output go away, as `head` does? That is no failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
