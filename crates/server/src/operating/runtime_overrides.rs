//! Keys that an operator has given limits of their own while requests come in.
//!
//! They stand before the overrides of the file, and outlive its reloads: whatever is in force is the file's policies with
//! these added. One that does not fit another file's policies (its policy or limit is gone, say) is put off, not
//! forgotten: it is listed with the reason, and holds again when it fits again. All of them end with the process.

use tidegate::policy::{Override, Policies};

use crate::operating::admin::{KeyQuery, Refusal};

/// The most overrides at once. Each is found in a list when one is changed, and none when a request comes.
pub(crate) const RUNTIME_OVERRIDES_MAX: usize = 256;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeOverride {
    pub(crate) policy: String,
    pub(crate) special: Override,
    /// The key's bytes when it was put in force.
    pub(crate) bytes: Vec<u8>,
    /// When that was, in seconds since the epoch of Unix.
    pub(crate) since_s: u64,
    /// Why it does not hold, if it does not.
    pub(crate) put_off: Option<String>,
}

/// The file's policies, and what is added to them.
#[derive(Debug)]
pub(crate) struct RuntimeOverrides {
    file: Policies,
    all: Vec<RuntimeOverride>,
}

impl RuntimeOverrides {
    pub(crate) fn new(file: Policies) -> Self {
        Self { file, all: Vec::new() }
    }

    /// Those that have not ended.
    pub(crate) fn at(&self, now_s: u64) -> impl Iterator<Item = &RuntimeOverride> {
        self.all.iter().filter(move |one| one.is_at(now_s))
    }

    /// The policies of another file, with what is added.
    pub(crate) fn with_file(&mut self, file: Policies, now_s: u64) -> Policies {
        self.file = file;
        self.policies(now_s)
    }

    /// Adds one, in place of that of the same key.
    pub(crate) fn put(&mut self, new: RuntimeOverride) -> Result<Policies, Refusal> {
        let now_s = new.since_s;
        let others = self.at(now_s).filter(|one| !one.is_of(&new.policy, &new.bytes));
        if others.count() >= RUNTIME_OVERRIDES_MAX {
            return Err(Refusal::conflict(format!(
                "there are {RUNTIME_OVERRIDES_MAX} overrides that were put in force while the process ran, and no more can \
                 be; remove some (`GET /v1/overrides` lists them), or write them into the file"
            )));
        }
        // What fits alone fits beside the others: they change only their own keys.
        self.file.clone().add_override(&new.policy, new.special.clone()).map_err(Refusal::of_key)?;
        self.all.retain(|one| !one.is_of(&new.policy, &new.bytes));
        self.all.push(new);
        Ok(self.policies(now_s))
    }

    /// Removes that of a key; `None` if it has none. A key that the policies in force know no more is told by its values.
    pub(crate) fn remove(&mut self, query: &KeyQuery, now_s: u64) -> Option<Policies> {
        let bytes = self.file.single_key(&query.policy, query.key(), now_s).ok().map(|key| key.bytes().to_vec());
        let (texts, count) = (query.texts().ok(), self.all.len());
        self.all.retain(|one| {
            let is_named = bytes.as_ref() == Some(&one.bytes) || texts.as_ref() == Some(&one.special.key);
            one.policy != query.policy || !is_named || !one.is_at(now_s)
        });
        (self.all.len() < count).then(|| self.policies(now_s))
    }

    /// The file's policies with all that fit.
    fn policies(&mut self, now_s: u64) -> Policies {
        self.all.retain(|one| one.is_at(now_s));
        let mut policies = self.file.clone();
        for one in &mut self.all {
            let added = policies.add_override(&one.policy, one.special.clone());
            one.put_off = added.err().map(|error| error.to_string());
        }
        policies
    }
}

impl RuntimeOverride {
    fn is_of(&self, policy: &str, bytes: &[u8]) -> bool {
        self.policy == policy && self.bytes == bytes
    }

    fn is_at(&self, now_s: u64) -> bool {
        self.special.until_s.is_none_or(|until_s| now_s < until_s)
    }
}
