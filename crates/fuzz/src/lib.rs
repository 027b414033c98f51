//! Every parser of Tidegate behind one door: any bytes may come in, and none may make it panic, hang, or take more
//! memory than is stated here.
//!
//! Some doors hold more than that against their parser: what is printed reads as the same again, and what comes in
//! pieces reads as what comes at once. A door that panics has found a mistake.
//!
//! `tests/smoke` sends mutations of the seeds through all doors, on any toolchain; `fuzz/run` at the top of the checkout
//! does so for as long as one likes, guided by what the program runs through. This crate ships in no program.

#![forbid(unsafe_code)]

mod addresses;
mod bytes;
mod calls;
mod configuration;
mod descriptors;
mod fields;
mod limitador;
mod logs;
mod texts;

/// A parser, and what it may take.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// Its name, which is that of its folder of seeds.
    pub name: &'static str,
    /// Takes any bytes.
    ///
    /// # Panics
    /// The parser is wrong.
    pub enter: fn(&[u8]),
    /// The most memory that it may hold at once beyond [`BASE_BYTES`], for each byte that comes in.
    pub bytes_per_byte: usize,
    /// Words that it knows, to be put in.
    pub words: &'static [&'static str],
}

/// What a door may hold at once for any input, however small: the largest table of its own.
pub const BASE_BYTES: usize = 1 << 20;
/// The longest input that is sent.
pub const INPUT_BYTES_MAX: usize = 1 << 16;

/// All doors.
pub const DOORS: [Door; 15] = [
    bytes::RESP,
    bytes::PROXY_PROTOCOL,
    calls::CALLS,
    calls::RATE_LIMIT_CALLS,
    configuration::TOML,
    configuration::YAML,
    configuration::JSON,
    descriptors::RULES,
    limitador::LIMITS,
    limitador::CEL,
    addresses::STORE_URL,
    fields::HEADER_FIELDS,
    logs::ACCESS_LOG,
    texts::LIMIT,
    texts::FLAGS,
];

/// The door of this name.
#[must_use]
pub fn door(name: &str) -> Option<Door> {
    DOORS.into_iter().find(|door| door.name == name)
}

/// The input as text: what is no UTF-8 is replaced.
fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}

/// The first byte as a choice, and the rest.
fn chosen(input: &[u8]) -> (usize, &[u8]) {
    input.split_first().map_or((0, input), |(first, rest)| (usize::from(*first), rest))
}
