//! JSON (RFC 8259) from strangers, read where it lies, and written without a tree between.
//!
//! Who reads says which fields there are, so nothing recurses: the depth of what is taken is that of the code. A field
//! that nobody reads, or that is there twice, is refused by its name; and whatever is wrong says where.

mod fault;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use fault::Fault;
pub(crate) use reader::{Kind, Reader, read};
pub(crate) use writer::Writer;
