//! The file from outside: the examples of the documentation, the mistakes people make, and the way back.

mod examples;
mod mistakes;
mod round_trip;

use super::{Config, ConfigError, Format, read};

fn toml(text: &str) -> Result<Config, ConfigError> {
    read("tidegate.toml", text, Format::Toml)
}
