//! What an operator sees and does: the policies in force, the admin face, keys that are denied most or have other limits
//! for a while.

pub(crate) mod admin;
pub(crate) mod denied;
pub(crate) mod in_force;
pub(crate) mod operation;
pub(crate) mod runtime_overrides;
