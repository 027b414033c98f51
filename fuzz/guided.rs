//! Sends what libFuzzer makes up through the door whose name `TIDEGATE_DOOR` is.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidegate_fuzz::{Door, door};

fn named() -> Door {
    let name = std::env::var("TIDEGATE_DOOR").expect("TIDEGATE_DOOR holds the name of a door");
    door(&name).unwrap_or_else(|| panic!("there is no door {name}"))
}

fuzz_target!(|input: &[u8]| {
    static DOOR: OnceLock<Door> = OnceLock::new();
    (DOOR.get_or_init(named).enter)(input);
});
