//! JSON (RFC 8259) from strangers, read where it lies, and written without a tree between.
//!
//! Who reads says which fields there are, so nothing recurses: the depth of what is taken is that of the code. A field
//! that nobody reads, or that is there twice, is refused by its name; and whatever is wrong says where.

use http::header::{CONTENT_TYPE, HeaderMap};

mod fault;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use fault::Fault;
pub(crate) use reader::{Kind, Reader, read};
pub(crate) use writer::Writer;

/// Do these fields say that a body is JSON? A web page can send one that says so only where it was allowed to before.
pub(crate) fn is_said_by(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    media_type.eq_ignore_ascii_case(b"application/json")
}
