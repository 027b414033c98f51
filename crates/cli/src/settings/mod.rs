//! The settings of the proxy beside its policies: as flags, or below `[proxy]` in the configuration file. A flag stands
//! before the file.
//!
//! One group per file, all in one mould: the fields with their flags, the names that the fields have in the file, and
//! what the program makes of them. `field` says what a field is.

mod admin;
mod answers;
mod entrance;
mod field;
mod logs;
mod serving;
mod state;
mod traces;
mod upstreams;

use clap::Args;
use tidegate::policy::file::Setting;
use tidegate_server::Bounds;

pub(crate) use self::admin::AdminFlags;
pub(crate) use self::answers::Answers;
use self::entrance::EntranceFlags;
use self::field::Field;
pub(crate) use self::logs::Logs;
use self::serving::Serving;
pub(crate) use self::state::StateFlags;
pub(crate) use self::traces::Traces;
use self::upstreams::Upstreams;

/// Where the proxy serves, and how.
#[derive(Args, Clone, Default)]
pub(crate) struct ProxyFlags {
    #[command(flatten)]
    pub(crate) serving: Serving,

    #[command(flatten)]
    pub(crate) entrance: EntranceFlags,

    #[command(flatten)]
    pub(crate) upstreams: Upstreams,

    #[command(flatten)]
    pub(crate) answers: Answers,

    #[command(flatten)]
    pub(crate) admin: AdminFlags,

    #[command(flatten)]
    pub(crate) state: StateFlags,

    #[command(flatten)]
    pub(crate) logs: Logs,

    #[command(flatten)]
    pub(crate) traces: Traces,
}

/// Settings that belong together.
trait Group {
    /// Each field, with its name in the file: that of its flag, with `_` between words.
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)>;
}

impl ProxyFlags {
    fn fields(&mut self) -> Vec<(&'static str, &mut dyn Field)> {
        let groups: [&mut dyn Group; 8] = [
            &mut self.serving,
            &mut self.entrance,
            &mut self.upstreams,
            &mut self.answers,
            &mut self.admin,
            &mut self.state,
            &mut self.logs,
            &mut self.traces,
        ];
        groups.into_iter().flat_map(Group::fields).collect()
    }

    /// These flags, and for what they leave open the settings of a file.
    ///
    /// # Errors
    /// The settings that are not what is taken, with what is wrong.
    pub(crate) fn or<'s>(&self, settings: &'s [Setting]) -> Result<Self, Vec<(&'s Setting, String)>> {
        let (mut all, mut wrong) = (self.clone(), Vec::new());
        let mut fields = all.fields();
        for setting in settings {
            // Names that are not known are refused where the file is read.
            let Some((_, field)) = fields.iter_mut().find(|(name, _)| *name == setting.name) else { continue };
            wrong.extend(field.fill(&setting.text).err().map(|message| (setting, message)));
        }
        // Each may be one, and two of them be for the same requests.
        let together = all.upstreams.upstreams().err().map(|error| error.to_string());
        let place = settings.iter().find(|setting| setting.name == "upstream");
        wrong.extend(place.zip(together));
        if wrong.is_empty() { Ok(all) } else { Err(wrong) }
    }

    /// As a file says them.
    pub(crate) fn to_settings(&self) -> Vec<Setting> {
        let mut all = self.clone();
        let fields = all.fields();
        fields.iter().filter_map(|(name, field)| Some(Setting::new(name, &field.text()?))).collect()
    }

    /// How much is taken and passed on, and for how long is waited.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { grace: self.serving.grace(), upstream: self.upstreams.bounds(), ..Bounds::default() }
    }
}

#[cfg(test)]
mod tests {
    use tidegate::policy::file::PROXY_SETTINGS;

    use super::*;

    #[test]
    fn the_file_knows_each_setting_and_no_other() {
        let mut flags = ProxyFlags::default();
        let names: Vec<_> = flags.fields().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, PROXY_SETTINGS);
    }
}
