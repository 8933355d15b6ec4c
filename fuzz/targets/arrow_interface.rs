//! Fuzz target for the extension, called from Python with Arrow C streams whose structures contradict themselves.
//!
//! The result must be counts, InputError or SchemaError, and every structure must be released exactly once. The
//! interface does not give buffer sizes, so a producer that promises more bytes than it has cannot be detected. Here
//! every buffer is as long as any length that is not rejected by itself.
#![no_main]

use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Once;

use arbitrary::Arbitrary;
use discreet as _;
use libfuzzer_sys::fuzz_target;
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyModule};

/// More bytes than 2 * 255 cells of 127 bytes have.
const ROOM: usize = 1 << 16;
/// The largest end of a string and the largest length of a view block.
const END: i64 = 1 << 13;

#[repr(C)]
#[derive(Clone, Copy)]
struct RawSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut RawSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut RawArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

#[derive(Arbitrary, Debug)]
struct Producer {
    table: Text,
    columns: [Field; 2],
    counts: (Children, Children),
    batches: Vec<Batch>,
    fails: Option<(bool, u8)>,
    error: Option<Vec<u8>>,
}

#[derive(Arbitrary, Debug)]
struct Field {
    format: Format,
    name: Text,
    children: Option<i8>,
    values: Option<Format>,
}

#[derive(Arbitrary, Debug, Clone)]
enum Format {
    Known(u8),
    Width(i8),
    Odd(Vec<u8>),
    Missing,
}

#[derive(Arbitrary, Debug)]
enum Text {
    Right,
    Odd(Vec<u8>),
    Missing,
}

#[derive(Arbitrary, Debug)]
struct Children {
    count: Option<i8>,
    is_missing: bool,
    are_missing: [bool; 2],
}

#[derive(Arbitrary, Debug)]
struct Batch {
    table: Cells,
    columns: [Cells; 2],
    values: [Option<Cells>; 2],
}

#[derive(Arbitrary, Debug)]
struct Cells {
    length: Number,
    offset: Number,
    nulls: Option<Number>,
    n_buffers: Option<i8>,
    is_missing: bool,
    buffers: [Option<Vec<u8>>; 4],
}

/// Small numbers, and numbers that must be rejected by themselves.
#[derive(Arbitrary, Debug)]
enum Number {
    Small(u8),
    Negative(u64),
    Huge(u8),
}

impl Number {
    fn value(&self) -> i64 {
        match *self {
            Self::Small(number) => number.into(),
            Self::Negative(number) => (number | 1 << 63) as i64,
            Self::Huge(number) => i64::MAX - i64::from(number),
        }
    }
}

impl Format {
    const KNOWN: [&str; 16] =
        ["c", "C", "s", "S", "i", "I", "l", "L", "u", "U", "z", "Z", "vu", "vz", "+s", "n"];

    fn text(&self) -> Option<Vec<u8>> {
        match self {
            Self::Known(number) => Some(Self::KNOWN[usize::from(*number) % 16].into()),
            Self::Width(width) => Some(format!("w:{width}").into()),
            // Cells wider than the buffer would be an error that no reader can detect.
            Self::Odd(bytes) if bytes.first() == Some(&b'w') => Some(b"x".into()),
            Self::Odd(bytes) => Some(bytes.clone()),
            Self::Missing => None,
        }
    }
}

/// Owns everything that the pointers of one input point at, until the call returns.
#[derive(Default)]
struct Stage {
    texts: Vec<CString>,
    bytes: Vec<Vec<u128>>,
    buffers: Vec<Vec<*const c_void>>,
    schemas: Vec<Box<RawSchema>>,
    arrays: Vec<Box<RawArray>>,
    schema_lists: Vec<Vec<*mut RawSchema>>,
    array_lists: Vec<Vec<*mut RawArray>>,
    schema: Option<RawSchema>,
    batches: VecDeque<RawArray>,
    fails: Option<(bool, u8)>,
    error: Option<CString>,
    given: usize,
    released: usize,
}

impl Stage {
    fn text(&mut self, bytes: Option<Vec<u8>>) -> *const c_char {
        let Some(mut bytes) = bytes else { return null() };
        bytes.retain(|&byte| byte != 0);
        self.texts.push(CString::new(bytes).unwrap_or_default());
        self.texts[self.texts.len() - 1].as_ptr()
    }

    fn field(&mut self, field: &Field, name: &str) -> *mut RawSchema {
        let values = field.values.as_ref().map(|values| {
            let format = self.text(values.text());
            self.schemas.push(Box::new(RawSchema { format, ..EMPTY_SCHEMA }));
            &raw mut **self.schemas.last_mut().unwrap()
        });
        let format = self.text(field.format.text());
        let name = match &field.name {
            Text::Right => self.text(Some(name.into())),
            Text::Odd(bytes) => self.text(Some(bytes.clone())),
            Text::Missing => null(),
        };
        // Set at most a negative count of children here; the table's own counts are varied elsewhere.
        let n_children = field.children.map_or(0, |count| i64::from(count).min(0));
        let dictionary = values.unwrap_or(null_mut());
        let schema = RawSchema { format, name, n_children, dictionary, ..EMPTY_SCHEMA };
        self.schemas.push(Box::new(schema));
        &raw mut **self.schemas.last_mut().unwrap()
    }

    /// Return the number of children, at most the true number, and their list.
    fn children<T>(given: &Children, mut all: Vec<*mut T>) -> (i64, Vec<*mut T>) {
        for (child, is_missing) in all.iter_mut().zip(given.are_missing) {
            *child = if is_missing { null_mut() } else { *child };
        }
        let count = given.count.map_or(2, |count| i64::from(count).min(2));
        (count, if given.is_missing { Vec::new() } else { all })
    }

    fn cells(&mut self, cells: Cells, format: &Format) -> RawArray {
        let format = format.text().unwrap_or_default();
        let length = cells.length.value();
        let mut pointers = Vec::new();
        for (number, bytes) in cells.buffers.into_iter().enumerate() {
            let Some(bytes) = bytes else {
                pointers.push(null());
                continue;
            };
            let mut words = vec![0_u128; ROOM / 16];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks(16)) {
                let mut whole = [0; 16];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = u128::from_le_bytes(whole);
            }
            match (format.as_slice(), number) {
                (b"u" | b"z", 1) => words.iter_mut().for_each(|word| *word = bounded(*word, 4)),
                (b"U" | b"Z", 1) | (b"vu" | b"vz", 2..) => {
                    words.iter_mut().for_each(|word| *word = bounded(*word, 2));
                }
                _ => {}
            }
            pointers.push(words.as_ptr().cast());
            self.bytes.push(words);
        }
        let usual = match format.as_slice() {
            b"u" | b"U" | b"z" | b"Z" => 3,
            b"vu" | b"vz" => 4,
            b"+s" => 1,
            _ => 2,
        };
        let buffers = if cells.is_missing { null_mut() } else { pointers.as_mut_ptr() };
        self.buffers.push(pointers);
        RawArray {
            length,
            null_count: cells.nulls.map_or(-1, |nulls| nulls.value()),
            offset: cells.offset.value(),
            n_buffers: cells.n_buffers.map_or(usual, |count| i64::from(count).min(4)),
            buffers,
            ..EMPTY_ARRAY
        }
    }

    fn of(producer: Producer) -> Box<Self> {
        let mut stage = Box::new(Self::default());
        let own = (&raw mut *stage).cast::<c_void>();
        let columns: Vec<_> = producer
            .columns
            .iter()
            .zip(["user", "item"])
            .map(|(field, name)| stage.field(field, name))
            .collect();
        let (n_children, mut children) = Self::children(&producer.counts.0, columns);
        let format = match producer.table {
            Text::Right => stage.text(Some("+s".into())),
            Text::Odd(bytes) => stage.text(Some(bytes)),
            Text::Missing => null(),
        };
        stage.schema = Some(RawSchema {
            format,
            n_children,
            children: if children.is_empty() { null_mut() } else { children.as_mut_ptr() },
            release: Some(release_schema),
            private_data: own,
            ..EMPTY_SCHEMA
        });
        stage.schema_lists.push(children);
        for batch in producer.batches.into_iter().take(4) {
            let mut columns = Vec::new();
            for ((cells, values), field) in
                batch.columns.into_iter().zip(batch.values).zip(&producer.columns)
            {
                let mut array = stage.cells(cells, &field.format);
                if let Some(values) = values {
                    let format = field.values.clone().unwrap_or(Format::Known(8));
                    let values = stage.cells(values, &format);
                    stage.arrays.push(Box::new(values));
                    array.dictionary = &raw mut **stage.arrays.last_mut().unwrap();
                }
                stage.arrays.push(Box::new(array));
                columns.push(&raw mut **stage.arrays.last_mut().unwrap());
            }
            let mut table = stage.cells(batch.table, &Format::Known(14));
            let (n_children, mut children) = Self::children(&producer.counts.1, columns);
            table.n_children = n_children;
            table.children = if children.is_empty() { null_mut() } else { children.as_mut_ptr() };
            table.release = Some(release_array);
            table.private_data = own;
            stage.array_lists.push(children);
            stage.batches.push_back(table);
        }
        stage.fails = producer.fails;
        stage.error = producer.error.map(|mut text| {
            text.retain(|&byte| byte != 0);
            CString::new(text).unwrap_or_default()
        });
        stage
    }
}

/// Return a word of `parts` numbers, each at most the size of the buffer.
fn bounded(word: u128, parts: u32) -> u128 {
    let bits = 128 / parts;
    (0..parts).fold(0, |all, part| {
        let number = word >> (part * bits) & ((1 << bits) - 1);
        let is_negative = number >> (bits - 1) == 1;
        let number = if is_negative { number } else { number % END as u128 };
        all | number << (part * bits)
    })
}

const EMPTY_SCHEMA: RawSchema = RawSchema {
    format: null(),
    name: null(),
    metadata: null(),
    flags: 2,
    n_children: 0,
    children: null_mut(),
    dictionary: null_mut(),
    release: None,
    private_data: null_mut(),
};
const EMPTY_ARRAY: RawArray = RawArray {
    length: 0,
    null_count: 0,
    offset: 0,
    n_buffers: 0,
    n_children: 0,
    buffers: null_mut(),
    children: null_mut(),
    dictionary: null_mut(),
    release: None,
    private_data: null_mut(),
};

// SAFETY of all callbacks: the consumer passes a structure that it received, whose private data is the stage.
unsafe extern "C" fn release_schema(schema: *mut RawSchema) {
    unsafe {
        (*(*schema).private_data.cast::<Stage>()).released += 1;
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut RawArray) {
    unsafe {
        (*(*array).private_data.cast::<Stage>()).released += 1;
        (*array).release = None;
    }
}

unsafe extern "C" fn release_stream(stream: *mut RawStream) {
    unsafe {
        (*(*stream).private_data.cast::<Stage>()).released += 1;
        (*stream).release = None;
    }
}

unsafe extern "C" fn get_schema(stream: *mut RawStream, into: *mut RawSchema) -> c_int {
    let stage = unsafe { &mut *(*stream).private_data.cast::<Stage>() };
    match stage.schema.take() {
        Some(schema) if stage.fails.is_none_or(|(in_schema, _)| !in_schema) => {
            stage.given += 1;
            unsafe { into.write(schema) };
            0
        }
        _ => 5,
    }
}

unsafe extern "C" fn get_next(stream: *mut RawStream, into: *mut RawArray) -> c_int {
    let stage = unsafe { &mut *(*stream).private_data.cast::<Stage>() };
    if let Some((_, left)) = &mut stage.fails {
        if *left == 0 {
            return 5;
        }
        *left -= 1;
    }
    let next = stage.batches.pop_front();
    stage.given += usize::from(next.is_some());
    unsafe { into.write(next.unwrap_or(EMPTY_ARRAY)) };
    0
}

unsafe extern "C" fn get_last_error(stream: *mut RawStream) -> *const c_char {
    let stage = unsafe { &*(*stream).private_data.cast::<Stage>() };
    stage.error.as_ref().map_or(null(), |text| text.as_ptr())
}

unsafe extern "C" {
    fn PyInit__core() -> *mut pyo3::ffi::PyObject;
}

/// Return the extension. Its package is imported without its `__init__`, which would load another copy of the
/// extension.
fn extension(py: Python<'_>) -> Bound<'_, PyModule> {
    static START: Once = Once::new();
    START.call_once(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/discreet");
        let code =
            c_str!("import sys, types; sys.modules['discreet'] = types.ModuleType('discreet')");
        py.run(code, None, None).expect("Python runs");
        let package = py.import("discreet").expect("the package is there");
        package.setattr("__path__", [folder]).expect("a module has attributes");
    });
    py.import("_core").expect("the extension is linked in")
}

fuzz_target!(init: {
    // SAFETY: Python is not started yet.
    unsafe { pyo3::ffi::PyImport_AppendInittab(c"_core".as_ptr(), Some(PyInit__core)) };
    Python::initialize();
}, |producer: Producer| {
    let mut stage = Stage::of(producer);
    stage.given += 1;
    let mut stream = RawStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: (&raw mut *stage).cast(),
    };
    Python::attach(|py| {
        let core = extension(py);
        let name = c"arrow_array_stream";
        // SAFETY: the stream lives longer than the capsule.
        let capsule = unsafe {
            let capsule = pyo3::ffi::PyCapsule_New((&raw mut stream).cast(), name.as_ptr(), None);
            Bound::from_owned_ptr(py, capsule)
        };
        let given = [("threads", 1)].into_py_dict(py).expect("a dict is made");
        let counted = core
            .getattr("count_distinct")
            .and_then(|count| count.call((capsule, "user", "item"), Some(&given)));
        if let Err(error) = counted {
            let kind = error.get_type(py).name().expect("a class has a name").to_string();
            assert!(kind == "InputError" || kind == "SchemaError", "{error}");
        }
    });
    if stream.release.is_some() {
        // SAFETY: nobody took the stream, so this target must release it.
        unsafe { release_stream(&raw mut stream) };
    }
    assert_eq!(stage.given, stage.released, "every structure is released once");
});
