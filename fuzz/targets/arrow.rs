//! Fuzz target for counting two Arrow columns whose buffers, offsets and null counts may contradict their type.
//!
//! The count must never panic or read out of bounds. If Arrow's full validation accepts both columns, and no l0, limit
//! or cap is given, the counts must equal the counts of a simple loop over Arrow's accessors.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Arbitrary;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int32Type, Int64Type, UInt8Type, UInt64Type};
use arrow_array::{Array, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use discreet::columns::{Batch, Column};
use discreet::count::bound::Contribution;
use discreet::count::{CountOptions, count_distinct};
use libfuzzer_sys::fuzz_target;

/// The most rows of a column: enough to pass the sizes at which the reader switches its method.
const ROWS: u16 = 600;

#[derive(Arbitrary, Debug)]
struct Table {
    users: Description,
    items: Description,
    len: u16,
    slice: (u16, u16),
    l0: Option<u8>,
    limit: Option<u8>,
    cap: Option<u8>,
}

#[derive(Arbitrary, Debug)]
struct Description {
    kind: Kind,
    offset: u8,
    nulls: Option<(Vec<u8>, u16)>,
    buffers: [Bytes; 3],
    /// The number of buffers, if it differs from the layout's.
    buffer_count: Option<u8>,
    values: (ValueKind, u8, [Bytes; 2]),
}

/// The bytes of a buffer, in four forms.
#[derive(Arbitrary, Debug)]
enum Bytes {
    /// The bytes themselves.
    AsGiven(Vec<u8>),
    /// The bytes repeated, so that there are more than 16 bytes for each row.
    Enough(Vec<u8>),
    /// Ascending 32-bit offsets, whose differences are the bytes modulo 32, repeated.
    Offsets(Vec<u8>),
    /// The same offsets with 64 bits.
    WideOffsets(Vec<u8>),
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Kind {
    Plain(ValueKind),
    Bytes,
    Words,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum ValueKind {
    Signed,
    Unsigned,
    Text,
    LargeText,
    TextView,
    Binary,
    BinaryView,
    Fixed(i8),
}

impl ValueKind {
    /// Return the number of buffers besides the bitmap; a view may have any number.
    fn buffers(self) -> usize {
        match self {
            Self::Signed | Self::Unsigned | Self::Fixed(_) => 1,
            Self::Text | Self::LargeText | Self::Binary => 2,
            Self::TextView | Self::BinaryView => 3,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Signed => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Text => DataType::Utf8,
            Self::LargeText => DataType::LargeUtf8,
            Self::TextView => DataType::Utf8View,
            Self::Binary => DataType::Binary,
            Self::BinaryView => DataType::BinaryView,
            Self::Fixed(width) => DataType::FixedSizeBinary(width.into()),
        }
    }
}

impl Bytes {
    fn buffer(self) -> Buffer {
        const ENOUGH: usize = 16 * (ROWS as usize + 256 + 1);
        let cycle =
            |bytes: Vec<u8>| -> Vec<u8> { bytes.into_iter().cycle().take(ENOUGH).collect() };
        // Lengths of cells add up to ascending offsets, so that many inputs pass the first check of the reader.
        let ends = |lens: Vec<u8>| {
            let lens = cycle(lens).into_iter().map(|len| u64::from(len % 32));
            lens.scan(0, |end, len| Some(std::mem::replace(end, *end + len))).collect::<Vec<u64>>()
        };
        match self {
            Self::AsGiven(bytes) => Buffer::from_vec(bytes),
            Self::Enough(bytes) => Buffer::from_vec(cycle(bytes)),
            Self::Offsets(lens) => {
                Buffer::from_vec(ends(lens).into_iter().map(|end| end as i32).collect())
            }
            Self::WideOffsets(lens) => {
                Buffer::from_vec(ends(lens).into_iter().map(|end| end as i64).collect())
            }
        }
    }
}

/// Build an array without validation. The bitmap has one bit per cell, which Arrow's own import ensures; its null
/// count may be wrong.
fn array(
    data_type: DataType,
    (len, offset): (usize, usize),
    nulls: Option<(Vec<u8>, u16)>,
    buffers: Vec<Buffer>,
    child: Option<ArrayData>,
) -> ArrayData {
    let nulls = nulls.map(|(bits, count)| {
        let bits: Vec<u8> = bits.into_iter().chain([0xa5]).cycle().take(len.div_ceil(8)).collect();
        let bits = BooleanBuffer::new(Buffer::from_vec(bits), 0, len);
        // SAFETY: the reader must not rely on the null count for memory safety; this target tests that.
        unsafe { NullBuffer::new_unchecked(bits, count.into()) }
    });
    let builder = ArrayData::builder(data_type)
        .len(len)
        .offset(offset)
        .nulls(nulls)
        .buffers(buffers)
        .child_data(child.into_iter().collect());
    // SAFETY: Arrow's typed accessors see the array only after `validate_full` accepted it.
    unsafe { builder.build_unchecked() }
}

impl Description {
    fn array(self, len: usize) -> ArrayData {
        let (count, data_type, child) = match self.kind {
            Kind::Plain(kind) => (kind.buffers(), kind.data_type(), None),
            Kind::Bytes | Kind::Words => {
                let (kind, len, buffers) = self.values;
                let buffers = buffers.into_iter().take(kind.buffers()).map(Bytes::buffer).collect();
                let child = array(kind.data_type(), (len.into(), 0), None, buffers, None);
                let index = if matches!(self.kind, Kind::Bytes) {
                    DataType::UInt8
                } else {
                    DataType::Int32
                };
                let data_type = DataType::Dictionary(Box::new(index), Box::new(kind.data_type()));
                (1, data_type, Some(child))
            }
        };
        let count = self.buffer_count.map_or(count, usize::from);
        let buffers = self.buffers.into_iter().take(count).map(Bytes::buffer).collect();
        array(data_type, (len, self.offset.into()), self.nulls, buffers, child)
    }
}

/// A cell as bytes or as an integer, read by Arrow's own accessors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Number(u64),
    Bytes(Vec<u8>),
}

fn cells(data: &ArrayData) -> Vec<Option<Cell>> {
    let array = make_array(data.clone());
    let bytes = |cell: Option<&[u8]>| cell.map(|cell| Cell::Bytes(cell.to_vec()));
    match data.data_type() {
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .iter()
            .map(|n| n.map(|n| Cell::Number(n as u64)))
            .collect(),
        DataType::UInt64 => {
            array.as_primitive::<UInt64Type>().iter().map(|n| n.map(Cell::Number)).collect()
        }
        DataType::Utf8 => {
            array.as_string::<i32>().iter().map(|s| bytes(s.map(str::as_bytes))).collect()
        }
        DataType::LargeUtf8 => {
            array.as_string::<i64>().iter().map(|s| bytes(s.map(str::as_bytes))).collect()
        }
        DataType::Utf8View => {
            array.as_string_view().iter().map(|s| bytes(s.map(str::as_bytes))).collect()
        }
        DataType::Binary => array.as_binary::<i32>().iter().map(bytes).collect(),
        DataType::BinaryView => array.as_binary_view().iter().map(bytes).collect(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().map(bytes).collect(),
        DataType::Dictionary(index, _) if **index == DataType::UInt8 => {
            dictionary_cells::<UInt8Type>(array.as_ref())
        }
        _ => dictionary_cells::<Int32Type>(array.as_ref()),
    }
}

fn dictionary_cells<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Vec<Option<Cell>> {
    let array = array.as_dictionary::<K>();
    let values = cells(&array.values().to_data());
    (0..array.len()).map(|row| array.key(row).and_then(|key| values[key].clone())).collect()
}

fn expected(users: &ArrayData, items: &ArrayData) -> Vec<i64> {
    let mut pairs: BTreeMap<Cell, BTreeSet<Cell>> = BTreeMap::new();
    for (user, item) in cells(users).into_iter().zip(cells(items)) {
        if let (Some(user), Some(item)) = (user, item) {
            pairs.entry(item).or_default().insert(user);
        }
    }
    let mut counts: Vec<i64> = pairs.into_values().map(|users| users.len() as i64).collect();
    counts.sort_unstable();
    counts
}

/// Return whether Arrow's validation accepts the array. The validation panics if a buffer is not aligned or ends within
/// a cell. So buffers are aligned first, and a first buffer that is no multiple of 16 bytes is not accepted.
fn is_valid(data: &mut ArrayData) -> bool {
    let is_whole =
        |data: &ArrayData| data.buffers().first().is_none_or(|cells| cells.len() % 16 == 0);
    data.align_buffers();
    is_whole(data) && data.child_data().iter().all(is_whole) && data.validate_full().is_ok()
}

fuzz_target!(|table: Table| {
    let len = usize::from(table.len % (ROWS + 1));
    let (users, items) = (table.users.array(len), table.items.array(len));
    let start = usize::from(table.slice.0) % (len + 1);
    let rows = usize::from(table.slice.1) % (len - start + 1);
    let (mut users, mut items) = (users.slice(start, rows), items.slice(start, rows));
    let (Ok(user), Ok(item)) = (Column::new(users.clone()), Column::new(items.clone())) else {
        return;
    };
    let types = (user.label_type(), item.label_type());
    let l0 = table.l0.map(|l0| usize::from(l0.max(1)));
    let bound = Contribution::new(l0, None, types.1).expect("without a list nothing is drawn");
    let limit = table.limit.map(usize::from);
    let cap = table.cap.map(|cap| i64::from(cap.max(1)));
    let is_plain = bound.is_none() && limit.is_none() && cap.is_none();
    let terms = CountOptions {
        bound: bound.as_ref(),
        limit,
        cap,
        users: false,
        secret: None,
        threads: 1,
        memory: Some(1 << 26),
    };
    let batches = [Ok(Batch { users: user, items: item })].into_iter();
    let counted = count_distinct(batches, types, &terms, || Ok(()));
    if is_plain && is_valid(&mut users) && is_valid(&mut items) {
        let mut counts = counted.expect("a valid table is counted").counts;
        counts.sort_unstable();
        assert_eq!(counts, expected(&users, &items));
    }
});
