//! The structures of Arrow's C interfaces, as a producer fills them in; nothing in them is believed here.
#![allow(unsafe_code, reason = "Arrow's C interface hands over raw pointers")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::columns::integers::BROKEN;
use crate::error::Result;

/// `struct ArrowSchema`.
#[repr(C)]
pub struct RawSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
pub struct RawArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
pub struct RawStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut Self, *mut RawSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut Self, *mut RawArray) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// A structure that its producer releases.
pub trait Released: Sized {
    /// A structure that counts as released.
    const EMPTY: Self;

    /// The producer's callback, which is missing once it was called.
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! released {
    ($kind:ty, $($field:ident: $empty:expr),*) => {
        impl Released for $kind {
            const EMPTY: Self = Self { $($field: $empty,)* release: None, private_data: null_mut() };

            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }
        }
    };
}

released!(RawSchema, format: std::ptr::null(), name: std::ptr::null(), metadata: std::ptr::null(), flags: 0,
    n_children: 0, children: null_mut(), dictionary: null_mut());
released!(RawArray, length: 0, null_count: 0, offset: 0, n_buffers: 0, n_children: 0, buffers: null_mut(),
    children: null_mut(), dictionary: null_mut());
released!(RawStream, get_schema: None, get_next: None, get_last_error: None);

/// A structure that is released when it is dropped.
pub struct Owned<T: Released>(pub T);

// SAFETY: the interfaces let any one thread at a time use a structure, and only read what an array holds.
unsafe impl<T: Released> Send for Owned<T> {}
// SAFETY: as above; only an array is shared, which is read until the last owner drops it.
unsafe impl Sync for Owned<RawArray> {}

impl<T: Released> Owned<T> {
    /// Whether it holds anything.
    pub fn is_released(&mut self) -> bool {
        self.0.release().is_none()
    }
}

impl<T: Released> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: the callback has not been called, and is not again. It expects to find itself in the structure.
            unsafe { release(&raw mut self.0) };
            *self.0.release() = None;
        }
    }
}

/// A pointer of the `index`-th of `count` structures or buffers.
///
/// # Errors
/// [`BROKEN`] if `pointers` is NULL or there are not as many.
fn nth<T: Copy>(pointers: *mut T, count: i64, index: usize) -> Result<T> {
    if pointers.is_null() || !usize::try_from(count).is_ok_and(|count| index < count) {
        return Err(BROKEN);
    }
    // SAFETY: the interface promises `count` pointers here, and the index is below.
    Ok(unsafe { pointers.add(index).read() })
}

/// What a pointer of a structure points at.
fn target<'a, T>(pointer: *mut T) -> Option<&'a T> {
    // SAFETY: the interface promises that a pointer is NULL or points at a structure that lives as long as its owner,
    // to whom the callers below tie `'a`.
    unsafe { pointer.cast_const().as_ref() }
}

/// The bytes of a text, none where there is no text.
pub fn text<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the interface promises text that ends with a zero and lives as long as its owner.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

impl RawSchema {
    /// How many columns there are.
    pub fn columns(&self) -> Result<usize> {
        usize::try_from(self.n_children).map_err(|_| BROKEN)
    }

    /// A column.
    pub fn column(&self, index: usize) -> Result<&Self> {
        target(nth(self.children, self.n_children, index)?).ok_or(BROKEN)
    }

    /// What the values of a dictionary are.
    pub fn dictionary(&self) -> Option<&Self> {
        target(self.dictionary)
    }
}

impl RawArray {
    /// How many columns there are.
    pub fn columns(&self) -> Result<usize> {
        usize::try_from(self.n_children).map_err(|_| BROKEN)
    }

    /// A column that has not been released.
    pub fn column(&self, index: usize) -> Result<&Self> {
        let column = target(nth(self.children, self.n_children, index)?);
        column.filter(|column| column.release.is_some()).ok_or(BROKEN)
    }

    /// The values of a dictionary, unless they have been released.
    pub fn dictionary(&self) -> Result<Option<&Self>> {
        let values = target(self.dictionary);
        if values.is_some_and(|values| values.release.is_none()) { Err(BROKEN) } else { Ok(values) }
    }

    /// Where a buffer begins; may be NULL.
    pub fn buffer(&self, index: usize) -> Result<*mut u8> {
        Ok(nth(self.buffers, self.n_buffers, index)?.cast_mut().cast())
    }
}
