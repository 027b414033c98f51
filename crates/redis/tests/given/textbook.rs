//! The script of `docs/textbook-script.md`, taken out of the page.

use redis::{Connection, ConnectionLike as _, Value, cmd};

const PAGE: &str = include_str!("../../../../docs/textbook-script.md");

/// The page itself.
pub(crate) fn page() -> &'static str {
    PAGE
}

/// The script, as the page shows it.
pub(crate) fn script() -> &'static str {
    let (_, rest) = PAGE.split_once("```lua\n").expect("the page shows a script");
    rest.split_once("```").expect("the script ends").0
}

/// One call: does it let pass? `rate` is in tokens per second, `at` is the caller's time in seconds.
pub(crate) fn call(connection: &mut Connection, key: &str, (rate, burst): (&str, u64), at: &str, asked: u64) -> bool {
    let mut call = cmd("EVAL");
    call.arg(script()).arg(1).arg(key).arg(rate).arg(burst).arg(at).arg(asked);
    match connection.req_command(&call).unwrap() {
        Value::Int(allowed) => allowed == 1,
        other => panic!("{other:?}"),
    }
}
