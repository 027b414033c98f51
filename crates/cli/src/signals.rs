//! Being told to stop.

use std::thread;

use anyhow::Context as _;
use tidegate_server::Drain;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::say;

/// The exit code of a program that was interrupted twice, as shells have it: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// Starts the drain at the first SIGTERM or SIGINT; ends the program at the second.
pub(crate) fn drain_on_signal(drain: &Drain) -> anyhow::Result<()> {
    let drain = drain.clone();
    let runtime = runtime::Builder::new_current_thread().enable_io().build().context("cannot listen for signals")?;
    let (mut terminate, mut interrupt) = {
        let _inside = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let listen = move || {
        runtime.block_on(async {
            for is_second in [false, true] {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if is_second {
                    say::line("stopped at once; requests in flight were cut");
                    std::process::exit(INTERRUPTED);
                }
                say::line("stopping: no new connections, requests in flight are finished; once more to stop at once");
                drain.start();
            }
        });
    };
    thread::Builder::new().name("tidegate-signals".to_owned()).spawn(listen).context("cannot listen for signals")?;
    Ok(())
}
