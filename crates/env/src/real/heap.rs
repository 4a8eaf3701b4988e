//! The allocator's memory. The allocator keeps freed memory for a second, or for as long as there
//! are no allocations, before it gives it back to the system.

/// Gives free memory back to the system at once. It costs a call to the kernel for each run of
/// free pages, and page faults when they are used again. With another allocator it does nothing.
pub fn give_back_free_memory() {
    // SAFETY: `mi_collect` takes no pointer and may be called on any thread at any time: it claims
    // free pages by atomic steps before it gives them to the system, and visits only pages of the
    // calling thread's own heap. What it buys: the program stays within `--memory` while loads with
    // different sizes of values follow each other (docs/notes/0011).
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}
