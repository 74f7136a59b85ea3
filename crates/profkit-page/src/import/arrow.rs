//! Tables as Arrow IPC files and Parquet files.
use super::cells::{Cells, TextBuilder};
use super::{Fault, Parts};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, CompressionType, root_as_footer, root_as_message};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::catch_unwind;
use std::sync::Arc;

/// Reads a file. The readers of Parquet and Arrow panic on some damaged files. This is an error where panics unwind; where
/// they abort the process, whoever runs it must tell what was read.
pub(super) fn read(data: &[u8], is_parquet: bool) -> Result<Parts, Fault> {
    catch_unwind(|| read_inner(data, is_parquet)).unwrap_or_else(|_| {
        let form = if is_parquet { "Parquet" } else { "Arrow" };
        Err(damaged(format_args!("the reader of {form} gave up")))
    })
}

fn read_inner(data: &[u8], is_parquet: bool) -> Result<Parts, Fault> {
    let (schema, batches) = if is_parquet {
        parquet(data)?
    } else {
        ipc(data)?
    };
    let facts = schema.metadata().iter();
    let facts: BTreeMap<String, String> = facts
        .filter_map(|(name, value)| {
            Some((name.strip_prefix("profkit.")?.to_owned(), value.clone()))
        })
        .collect();
    let mut columns = Vec::new();
    for (index, field) in schema.fields().iter().enumerate() {
        let arrays: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
        columns.push((field.name().clone(), cells(field.data_type(), &arrays)));
    }
    Ok((columns, facts))
}

/// The 10 bytes at the end: the length of the footer, and the magic.
const TRAILER: usize = 10;

/// How many times as long as its compressed form a text can be at most: in LZ4, a byte more of a match's length stands for
/// 255 bytes; in Zstandard, a block of 4 bytes for 128 KiB.
const LZ4_RATIO: usize = 255;
const ZSTD_RATIO: usize = 32 << 10;

/// Reads the blocks of an Arrow file in place. `FileReader` would allocate what a block claims, and the decoder panics on
/// a buffer outside its block.
fn ipc(data: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>), Fault> {
    let cut = || damaged("the file is cut off");
    let (rest, trailer) = data.split_last_chunk::<TRAILER>().ok_or_else(cut)?;
    let length = read_footer_length(*trailer).map_err(damaged)?;
    let start = rest.len().checked_sub(length).ok_or_else(cut)?;
    let footer = root_as_footer(rest.get(start..).unwrap_or_default()).map_err(damaged)?;
    let schema = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(damaged("its byte order is not that of this machine"));
    }
    let schema: SchemaRef = Arc::new(try_fb_to_schema(schema).map_err(damaged)?);
    let mut decoder = FileDecoder::new(Arc::clone(&schema), footer.version());
    let file = Buffer::from(data);
    for block in footer.dictionaries().into_iter().flatten() {
        let bytes = block_of(&file, block)?;
        decoder.read_dictionary(block, &bytes).map_err(damaged)?;
    }
    let mut batches = Vec::new();
    for block in footer.recordBatches().into_iter().flatten() {
        let bytes = block_of(&file, block)?;
        let batch = decoder.read_record_batch(block, &bytes);
        batches.extend(batch.map_err(damaged)?);
    }
    Ok((schema, batches))
}

/// The bytes of a block, if they are in the file and the buffers of its message in its body.
fn block_of(file: &Buffer, block: &Block) -> Result<Buffer, Fault> {
    let outside = || damaged("a block or buffer is outside the file");
    let number = |number: i64| usize::try_from(number).map_err(|_| outside());
    let start = number(block.offset())?;
    let [head, body] = [
        number(block.metaDataLength().into())?,
        number(block.bodyLength())?,
    ];
    let end = start
        .checked_add(head)
        .and_then(|end| end.checked_add(body));
    let inside = end.is_some_and(|end| end <= file.len());
    if !inside || head < 8 {
        return Err(outside());
    }
    let bytes = file.slice_with_length(start, head + body);
    // Before the message stand its length, and since version 0.15 a mark.
    let skipped = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = bytes.get(skipped..head).unwrap_or_default();
    let message = root_as_message(message).map_err(damaged)?;
    let dictionary = message.header_as_dictionary_batch();
    let batch = match dictionary {
        Some(dictionary) => dictionary.data(),
        None => message.header_as_record_batch(),
    };
    let codec = batch.and_then(|batch| batch.compression());
    let most = match codec.map(|codec| codec.codec()) {
        None => None,
        Some(CompressionType::LZ4_FRAME) => Some(LZ4_RATIO),
        Some(CompressionType::ZSTD) if cfg!(feature = "zstd") => Some(ZSTD_RATIO),
        Some(codec) => {
            return Err(unread(
                codec.variant_name().unwrap_or("another codec"),
                "Arrow",
            ));
        }
    };
    for buffer in batch
        .and_then(|batch| batch.buffers())
        .into_iter()
        .flatten()
    {
        let (start, length) = (number(buffer.offset())?, number(buffer.length())?);
        let stored = start.checked_add(length).and_then(|end| {
            let stored = bytes.get(head..)?.get(start..end)?;
            Some(stored)
        });
        let Some(stored) = stored else {
            return Err(outside());
        };
        // Before a compressed buffer stands its length, which the decoder allocates; −1 if it is stored as it is.
        if let (Some(most), Some(claimed)) = (most, stored.first_chunk()) {
            let claimed = i64::from_le_bytes(*claimed);
            let fits = usize::try_from(claimed).is_ok_and(|claimed| claimed / most <= length);
            if claimed != -1 && !fits {
                return Err(damaged(format_args!(
                    "a buffer of {length} bytes claims to hold {claimed}"
                )));
            }
        }
    }
    Ok(bytes)
}

fn parquet(data: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>), Fault> {
    let builder =
        ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(data)).map_err(damaged)?;
    let schema = builder.schema().clone();
    let groups = builder.metadata().row_groups().iter();
    let mut codecs = groups
        .flat_map(|group| group.columns())
        .map(|column| column.compression());
    let known = |codec: &Compression| {
        matches!(codec, Compression::UNCOMPRESSED | Compression::SNAPPY)
            || cfg!(feature = "zstd") && matches!(codec, Compression::ZSTD(_))
    };
    if let Some(codec) = codecs.find(|codec| !known(codec)) {
        return Err(unread(&codec.to_string(), "Parquet"));
    }
    let groups = builder.metadata().row_groups().iter();
    for column in groups.flat_map(|group| group.columns()) {
        let start = match column.dictionary_page_offset() {
            Some(offset) => offset,
            None => column.data_page_offset(),
        };
        let end = start.checked_add(column.compressed_size());
        let end = end.and_then(|end| usize::try_from(end).ok());
        if start < 0 || column.compressed_size() < 0 || end.is_none_or(|end| end > data.len()) {
            return Err(damaged("a column is outside the file"));
        }
    }
    let reader = builder.build().map_err(damaged)?;
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(damaged)?;
    Ok((schema, batches))
}

/// The error about a codec that this build does not read.
fn unread(codec: &str, form: &str) -> Fault {
    let hint = match form {
        "Parquet" => {
            "write the file with Snappy: COMPRESSION snappy in DuckDB, compression=\"snappy\" in Polars and pyarrow"
        }
        _ => {
            "write the file without compression: compression=\"uncompressed\" in Polars and pyarrow"
        }
    };
    let build = match codec.to_ascii_uppercase().starts_with("ZSTD") {
        true => " without its feature `zstd`",
        false => "",
    };
    Fault {
        hint: Some(hint),
        ..Fault::new(format!(
            "the columns are compressed with {codec}, which profkit{build} does not read in {form} files"
        ))
    }
}

fn damaged(error: impl Display) -> Fault {
    Fault::new(format!("the file cannot be read: {error}"))
}

fn cells(kind: &DataType, arrays: &[&ArrayRef]) -> Cells {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            texts(kind, arrays)
        }
        DataType::UInt64 => numbers::<UInt64Type>(arrays),
        DataType::UInt32 => numbers::<UInt32Type>(arrays),
        DataType::UInt16 => numbers::<UInt16Type>(arrays),
        DataType::UInt8 => numbers::<UInt8Type>(arrays),
        DataType::Int64 => numbers::<Int64Type>(arrays),
        DataType::Int32 => numbers::<Int32Type>(arrays),
        DataType::Int16 => numbers::<Int16Type>(arrays),
        DataType::Int8 => numbers::<Int8Type>(arrays),
        DataType::Decimal128(_, 0) => numbers::<Decimal128Type>(arrays),
        DataType::Float64 => floats::<Float64Type>(arrays),
        DataType::Float32 => floats::<Float32Type>(arrays),
        other => Cells::Other(format!("the type {other}"), length(arrays)),
    }
}

fn length(arrays: &[&ArrayRef]) -> usize {
    arrays.iter().map(|array| array.len()).sum()
}

/// Numbers that a `u64` cannot hold make the column one of texts, so that the message about a cell shows it.
fn numbers<T: ArrowPrimitiveType>(arrays: &[&ArrayRef]) -> Cells
where
    T::Native: TryInto<u64> + Display,
{
    let rows = || {
        arrays
            .iter()
            .flat_map(|array| array.as_primitive::<T>().iter())
    };
    let fits = |cell: Option<T::Native>| cell.is_none_or(|cell| cell.try_into().is_ok());
    if rows().all(fits) {
        return Cells::Numbers(rows().map(|cell| cell?.try_into().ok()).collect());
    }
    let mut texts = TextBuilder::default();
    rows().for_each(|cell| texts.push(cell.map(|cell| cell.to_string()).as_deref()));
    texts.finish()
}

fn floats<T: ArrowPrimitiveType>(arrays: &[&ArrayRef]) -> Cells
where
    T::Native: Into<f64>,
{
    let rows = arrays
        .iter()
        .flat_map(|array| array.as_primitive::<T>().iter());
    Cells::Floats(rows.map(|cell| cell.map(Into::into)).collect())
}

fn texts(kind: &DataType, arrays: &[&ArrayRef]) -> Cells {
    let mut texts = TextBuilder::default();
    for array in arrays {
        let done = match kind {
            DataType::Utf8 => {
                array
                    .as_string::<i32>()
                    .iter()
                    .for_each(|cell| texts.push(cell));
                true
            }
            DataType::LargeUtf8 => {
                array
                    .as_string::<i64>()
                    .iter()
                    .for_each(|cell| texts.push(cell));
                true
            }
            DataType::Utf8View => {
                array
                    .as_string_view()
                    .iter()
                    .for_each(|cell| texts.push(cell));
                true
            }
            DataType::Dictionary(key, _) => match **key {
                DataType::UInt32 => dictionary::<UInt32Type>(array, &mut texts),
                DataType::Int32 => dictionary::<Int32Type>(array, &mut texts),
                DataType::UInt16 => dictionary::<UInt16Type>(array, &mut texts),
                DataType::Int16 => dictionary::<Int16Type>(array, &mut texts),
                DataType::UInt8 => dictionary::<UInt8Type>(array, &mut texts),
                DataType::Int8 => dictionary::<Int8Type>(array, &mut texts),
                DataType::Int64 => dictionary::<Int64Type>(array, &mut texts),
                DataType::UInt64 => dictionary::<UInt64Type>(array, &mut texts),
                _ => false,
            },
            _ => false,
        };
        if !done {
            return Cells::Other(format!("the type {kind}"), length(arrays));
        }
    }
    texts.finish()
}

/// Adds the texts of a dictionary; false if it is not one of texts.
fn dictionary<K: ArrowDictionaryKeyType>(array: &ArrayRef, texts: &mut TextBuilder) -> bool {
    let array = array.as_dictionary::<K>();
    let kind = array.values().data_type();
    if !matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    ) {
        return false;
    }
    let values = super::arrow::texts(kind, &[array.values()]);
    for row in 0..array.len() {
        let key = array.key(row);
        let text = key.and_then(|key| values.text(key).ok().flatten());
        texts.push(text);
    }
    true
}
