//! The structures of Arrow's C interfaces. A producer is a library that fills these structures. The numbers in a
//! structure are checked before use. Pointers cannot be checked, except for NULL.
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

/// A structure that the producer must release.
pub trait Released: Sized {
    /// An empty structure, which counts as released.
    const EMPTY: Self;

    /// Return the producer's release callback. It is `None` after the release.
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

/// A structure that is released when dropped.
pub struct Owned<T: Released>(pub T);

// SAFETY: the interfaces allow any thread to use a structure, if only one thread uses it at a time.
unsafe impl<T: Released> Send for Owned<T> {}
// SAFETY: threads only read shared arrays, until the last owner drops an array.
unsafe impl Sync for Owned<RawArray> {}

impl<T: Released> Owned<T> {
    /// Return whether the structure is empty or already released.
    pub fn is_released(&mut self) -> bool {
        self.0.release().is_none()
    }
}

impl<T: Released> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: the callback was not called before. The interface requires that it is set in the structure
            // during the call.
            unsafe { release(&raw mut self.0) };
            *self.0.release() = None;
        }
    }
}

/// Return the `index`-th of `count` pointers to structures or buffers.
///
/// # Errors
/// [`BROKEN`] if `pointers` is NULL or `index` is out of range.
fn nth<T: Copy>(pointers: *mut T, count: i64, index: usize) -> Result<T> {
    if pointers.is_null() || !usize::try_from(count).is_ok_and(|count| index < count) {
        return Err(BROKEN);
    }
    // SAFETY: the interface guarantees `count` pointers here, and the index is below `count`.
    Ok(unsafe { pointers.add(index).read() })
}

/// Dereference a pointer in a structure, or return `None` for NULL.
fn target<'a, T>(pointer: *mut T) -> Option<&'a T> {
    // SAFETY: the interface guarantees that the pointer is NULL, or points at a structure that lives as long as its
    // owner. The callers below tie `'a` to the owner.
    unsafe { pointer.cast_const().as_ref() }
}

/// Return the bytes of a C string, or `None` for NULL.
pub fn text<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the interface guarantees a zero-terminated string that lives as long as its owner.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

impl RawSchema {
    /// Return the number of columns.
    pub fn columns(&self) -> Result<usize> {
        usize::try_from(self.n_children).map_err(|_| BROKEN)
    }

    /// Return a column.
    pub fn column(&self, index: usize) -> Result<&Self> {
        target(nth(self.children, self.n_children, index)?).ok_or(BROKEN)
    }

    /// Return the schema of a dictionary's values.
    pub fn dictionary(&self) -> Option<&Self> {
        target(self.dictionary)
    }
}

impl RawArray {
    /// Return the number of columns.
    pub fn columns(&self) -> Result<usize> {
        usize::try_from(self.n_children).map_err(|_| BROKEN)
    }

    /// Return a column, or an error if the column is NULL or was released.
    pub fn column(&self, index: usize) -> Result<&Self> {
        let column = target(nth(self.children, self.n_children, index)?);
        column.filter(|column| column.release.is_some()).ok_or(BROKEN)
    }

    /// Return a dictionary's values, or `None` if the array is not a dictionary. Return an error if the values were
    /// released.
    pub fn dictionary(&self) -> Result<Option<&Self>> {
        let values = target(self.dictionary);
        if values.is_some_and(|values| values.release.is_none()) { Err(BROKEN) } else { Ok(values) }
    }

    /// Return the start of a buffer, which may be NULL.
    pub fn buffer(&self, index: usize) -> Result<*mut u8> {
        Ok(nth(self.buffers, self.n_buffers, index)?.cast_mut().cast())
    }
}
