//! Counts replies without taking them apart.

/// The length of the first whole reply in these bytes; `None` if more must come.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let line_end = end + 2;
    let number = || std::str::from_utf8(&bytes[1..end]).ok()?.parse::<i64>().ok();
    match bytes.first()? {
        b'+' | b':' | b'_' => Some(line_end),
        b'$' => match usize::try_from(number()?) {
            Ok(length) => (bytes.len() >= line_end + length + 2).then_some(line_end + length + 2),
            Err(_) => Some(line_end),
        },
        b'*' => (0..number()?).try_fold(line_end, |at, _| Some(at + length(&bytes[at..])?)),
        _ => panic!("the server answered {}", String::from_utf8_lossy(&bytes[..end])),
    }
}
