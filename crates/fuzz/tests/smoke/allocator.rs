//! An allocator that counts what each thread holds.
//!
//! The only unsafe code of the checkout, and in no program: memory can be counted only by who hands it out.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted.
pub(crate) struct Counting;

fn count(bytes: isize) {
    // A thread that is ending is not counted.
    let _ = HELD_BYTES.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: everything is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller says.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The most bytes that this thread held at once while it ran this, beyond what it held before.
pub(crate) fn peak_bytes_of(run: impl FnOnce()) -> usize {
    let before = HELD_BYTES.get();
    PEAK_BYTES.set(before);
    run();
    usize::try_from(PEAK_BYTES.get() - before).expect("the peak is no less than the start")
}
