//! Being told to stop, or to read the configuration anew.

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use tidegate_server::Drain;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::say;

/// The exit code of a program that was interrupted, as shells have it: 128 and the number of the signal.
pub(crate) const INTERRUPTED: u8 = 130;
/// Signals so close to the first are the same one: a wrapper passes on what the whole group was sent already.
const ECHO: Duration = Duration::from_millis(200);

/// Starts the drain at the first SIGTERM or SIGINT; ends the program at the second.
pub(crate) fn drain_on_signal(drain: &Drain) -> anyhow::Result<()> {
    let drain = drain.clone();
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("cannot listen for signals")?;
    let first = runtime.block_on(async { StopSignals::new() })?;
    let listen = move || runtime.block_on(drain_then_exit(first, &drain));
    thread::Builder::new().name("tidegate-signals".to_owned()).spawn(listen).context("cannot listen for signals")?;
    Ok(())
}

/// Says so each time the program is told to read its configuration anew, by SIGHUP. Those that come while nobody listens
/// are one.
pub(crate) fn hang_ups() -> anyhow::Result<Receiver<()>> {
    let (told, hang_ups) = sync_channel(1);
    let tell = move || {
        // If one is waiting to be heard already, that is enough.
        let _ = told.try_send(());
    };
    on_each(SignalKind::hangup(), "tidegate-hang-ups", tell)?;
    Ok(hang_ups)
}

/// Calls `reopen` each time the program is told that logs were moved, by SIGUSR1 or SIGHUP.
pub(crate) fn on_rotation(reopen: impl Fn() + Clone + Send + 'static) -> anyhow::Result<()> {
    on_each(SignalKind::hangup(), "tidegate-rotation-1", reopen.clone())?;
    on_each(SignalKind::user_defined1(), "tidegate-rotation-2", reopen)
}

fn on_each(kind: SignalKind, thread: &str, then: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build().context("cannot listen for signals")?;
    let mut signals = runtime.block_on(async { signal(kind) }).context("cannot listen for signals")?;
    let listen = move || {
        runtime.block_on(async {
            while signals.recv().await.is_some() {
                then();
            }
        });
    };
    thread::Builder::new().name(thread.to_owned()).spawn(listen).context("cannot listen for signals")?;
    Ok(())
}

async fn drain_then_exit(mut first: StopSignals, drain: &Drain) {
    first.next().await;
    drain.start();
    say::line("stopping: no new connections, requests in flight are finished; once more to stop at once");
    sleep(ECHO).await;
    // Whoever listens anew hears only what comes from now on.
    match StopSignals::new() {
        Ok(mut second) => second.next().await,
        Err(error) => return say::warning(&format!("cannot listen for a second signal: {error}")),
    }
    say::line("stopped at once; requests in flight were cut");
    std::process::exit(INTERRUPTED.into());
}

/// The signals that tell a program to stop.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
