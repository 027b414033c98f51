//! Files of trusted networks, read where policies are read.

use std::fs::File;
use std::io::Read as _;

use tidegate::policy::Policies;

use crate::flags::Wrong;

/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The same policies, which trust what the files that they name say now.
///
/// # Errors
/// A file cannot be read, or a line of it is no network.
pub(crate) fn read(policies: Policies) -> Result<Policies, Wrong> {
    let mut trust = policies.client().trust.clone();
    if !trust.has_files() {
        return Ok(policies);
    }
    trust.read_files(text).map_err(Wrong::new)?;
    Ok(policies.with_trust(trust))
}

fn text(path: &str) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > FILE_BYTES_MAX => Err(format!("{path} is too large for a file of networks")),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot read the trusted networks in {path}: {error}")),
    }
}
