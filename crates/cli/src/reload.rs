//! The configuration file, read anew while a server serves: when it changes, and when the program is told to by a
//! SIGHUP.
//!
//! What is wrong changes nothing: the policies that were in force go on, and whoever operates it is told, in
//! words and in the metrics.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use tidegate::Store;
use tidegate::policy::file::Setting;
use tidegate_server::{Clock, Desk};

use crate::announce::names;
use crate::config_file::ConfigFile;
use crate::file_watch::{FileWatch, Found};
use crate::say;
use crate::screen::Screen;
use crate::settings::ProxyFlags;
use crate::watching::{self, Occasion};

/// What it takes to put a file in force.
pub(crate) struct Reload<S> {
    pub(crate) watch: FileWatch,
    pub(crate) file: ConfigFile,
    pub(crate) screen: Screen,
    /// The settings of the proxy that it was started with, if it is one.
    pub(crate) settings: Option<Vec<Setting>>,
    pub(crate) desk: Arc<Desk<S>>,
    pub(crate) clock: Clock,
}

impl<S: Store + 'static> Reload<S> {
    /// Looks at the file from now on, on a thread that ends with the program.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn start(mut self, hang_ups: Receiver<()>) -> anyhow::Result<()> {
        watching::start("tidegate-reload", hang_ups, move |occasion| {
            let found = match occasion {
                Occasion::Told => Some(self.watch.look().clone()),
                Occasion::Routine => self.watch.changed().cloned(),
            };
            found.iter().for_each(|found| self.put_in_force(found));
        })
    }

    fn put_in_force(&self, found: &Found) {
        let metrics = &self.desk.metrics().config;
        let applied = found.as_ref().map_err(Clone::clone).and_then(|contents| self.apply(contents));
        match applied {
            Ok(contents) => metrics.applied(contents, (self.clock)()),
            Err(why) => {
                metrics.failed();
                say::error(&format_args!("{why}"));
                say::line("nothing was changed: the policies that were in force go on");
            }
        }
    }

    fn apply<'c>(&self, contents: &'c str) -> Result<&'c str, String> {
        let read = self.screen.file(&self.file, contents, &ProxyFlags::default());
        let (config, _) = read.map_err(|why| why.to_string())?;
        let fresh = self.desk.with_policies(|old| config.policies.fresh_after(old));
        let warnings = self.screen.warnings(&config.policies);
        let in_force = names(&config.policies);
        self.desk.replace(config.policies);
        self.desk.read_from(&self.file.name());
        say::line(&format!("{} was read anew; in force: {in_force}", self.file.name()));
        fresh.iter().for_each(|fresh| say::line(&fresh.to_string()));
        warnings.iter().for_each(|warning| say::warning(warning));
        if self.settings.as_ref().is_some_and(|settings| !said_the_same(settings, &config.proxy)) {
            say::warning("what stands below `[proxy]` is another; that is read when the proxy is started again");
        }
        Ok(contents)
    }
}

/// Are they the same, wherever they stand in the file?
fn said_the_same(before: &[Setting], now: &[Setting]) -> bool {
    let texts = |settings: &[Setting]| {
        settings.iter().map(|setting| (setting.name.clone(), setting.text.clone())).collect::<Vec<_>>()
    };
    texts(before) == texts(now)
}
