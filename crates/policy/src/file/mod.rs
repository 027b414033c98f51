//! The configuration file: one model, written in TOML, YAML or JSON.
//!
//! A text becomes a tree whose nodes know where they stand; the tree becomes policies, and whatever is wrong with it
//! becomes a list of faults, all at once, each with its line. The types of the engine know nothing of files.
//! docs/configuration.md describes the file to people, [`SCHEMA`] to editors.
//!
//! Read `tree`, `reader`, `root`, `policy`, `limits`; then `print`, the way back.

mod complaint;
pub(crate) mod fault;
mod json;
mod limits;
mod near;
mod policy;
mod print;
pub(crate) mod reader;
mod root;
mod special;
#[cfg(test)]
mod tests;
mod toml;
pub(crate) mod tree;
mod until;
pub(crate) mod yaml;

use std::path::Path;

use crate::Policies;

pub use complaint::{Complaint, complain};
pub use fault::{ConfigError, ConfigFault};
pub use near::near;
pub use root::PROXY_SETTINGS;
pub use special::read_override;
pub use until::text as instant;

/// The largest file, in bytes.
pub const FILE_BYTES_MAX: usize = 64 << 20;

/// The JSON Schema of the file (draft 2020-12), whatever it is written in.
pub const SCHEMA: &str = include_str!("schema.json");

/// What a file is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// TOML 1.1.
    #[default]
    Toml,
    /// YAML 1.2, without anchors and tags.
    Yaml,
    /// JSON.
    Json,
}

impl Format {
    /// By the file's extension: `.yaml` and `.yml`, `.json`; TOML for every other.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        match path.extension().map(|extension| extension.to_ascii_lowercase()) {
            Some(extension) if extension == "yaml" || extension == "yml" => Self::Yaml,
            Some(extension) if extension == "json" => Self::Json,
            _ => Self::Toml,
        }
    }
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The policies.
    pub policies: Policies,
    /// Settings of the proxy.
    pub proxy: Vec<Setting>,
}

/// A setting that a face reads: the text of the flag of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name, one of [`PROXY_SETTINGS`].
    pub name: String,
    /// The value, as the flag of that name takes it.
    pub text: String,
    span: std::ops::Range<usize>,
}

impl Setting {
    /// A setting that stands in no file yet.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned(), span: 0..0 }
    }

    /// The error that its value is not what the face takes. `file` and `contents` are what was given to [`read`].
    #[must_use]
    pub fn error(&self, file: &str, contents: &str, message: &str) -> ConfigError {
        ConfigError::new(file, contents, vec![fault::Fault::new(&self.span, message)])
    }
}

/// Reads a file's contents; `name` is what errors call the file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(name: &str, contents: &str, format: Format) -> Result<Config, ConfigError> {
    let error = |faults| ConfigError::new(name, contents, faults);
    if contents.len() > FILE_BYTES_MAX {
        let message = format!("the file is too large; the maximum is {FILE_BYTES_MAX} bytes");
        return Err(error(vec![fault::Fault::new(&(0..0), message)]));
    }
    let (tree, faults) = tree_of(contents, format).map_err(|fault| error(vec![fault]))?;
    // Where the syntax is wrong, what was meant by it is not told.
    if !faults.is_empty() {
        return Err(error(faults));
    }
    root::config(&tree).map_err(error)
}

/// The file as a tree, and what is wrong with its syntax if a tree could be made all the same.
pub(crate) fn tree_of(contents: &str, format: Format) -> Result<(tree::Node, Vec<fault::Fault>), fault::Fault> {
    match format {
        Format::Toml => Ok(toml::tree(contents)),
        Format::Yaml => yaml::tree(contents).map(|tree| (tree, Vec::new())),
        Format::Json => json::tree(contents).map(|tree| (tree, Vec::new())),
    }
}

impl Config {
    /// The file in TOML that says the same; reading it gives the same configuration.
    #[must_use]
    pub fn to_toml(&self) -> String {
        print::config(self)
    }
}
