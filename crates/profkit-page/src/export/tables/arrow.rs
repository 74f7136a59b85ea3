//! Tables as Arrow IPC files and Parquet files.
use super::{ColumnData, StackColumn, TABLES_VERSION, Table};
use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt32Builder};
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, compute_leaves};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;
use std::io::Write;
use std::sync::Arc;

/// The largest number of rows in an Arrow record batch, and in a row group of a Parquet file.
const BATCH_ROWS: usize = 1 << 20;

impl Table {
    /// The table as one Arrow record batch. Unsigned numbers stay unsigned. Texts that occur in many rows are stored in
    /// a dictionary. A stack is a list of structures (function, file, line). The metadata of the schema has the facts
    /// about the profile, and `profkit.schema_version`.
    ///
    /// # Errors
    /// If Arrow refuses the columns, which would be a fault of profkit.
    pub fn record_batch(&self) -> Result<RecordBatch, ArrowError> {
        let mut metadata = std::collections::HashMap::new();
        metadata.insert(
            "profkit.schema_version".to_owned(),
            TABLES_VERSION.to_string(),
        );
        metadata.insert("profkit.table".to_owned(), self.kind.to_string());
        for (name, value) in &self.properties {
            metadata.insert(format!("profkit.{name}"), value.to_string());
        }
        let arrays: Vec<ArrayRef> = self
            .columns
            .par_iter()
            .map(|column| array(&column.data))
            .collect::<Result<_, _>>()?;
        let fields: Vec<Field> = self
            .columns
            .iter()
            .zip(&arrays)
            .map(|(column, array)| {
                let is_always_there = matches!(column.data, ColumnData::Numbers(_));
                Field::new(column.name, array.data_type().clone(), !is_always_there)
            })
            .collect();
        let schema = Schema::new(fields).with_metadata(metadata);
        RecordBatch::try_new(Arc::new(schema), arrays)
    }

    /// Writes the table as an Arrow IPC file ("Feather version 2").
    pub fn arrow(&self, out: impl Write) -> Result<(), ArrowError> {
        let batch = self.record_batch()?;
        let mut writer = FileWriter::try_new(out, &batch.schema())?;
        writer.write(&batch)?;
        writer.finish()
    }

    /// Writes the table as a Parquet file, compressed with Snappy. The columns are encoded in parallel; the bytes do
    /// not depend on the number of threads.
    pub fn parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let batch = self.record_batch()?;
        let mut properties = WriterProperties::builder();
        for column in &self.columns {
            if matches!(column.data, ColumnData::Texts(_)) {
                // A dictionary of texts that mostly differ would cost time and save no space.
                properties = properties.set_column_dictionary_enabled(column.name.into(), false);
            }
        }
        let properties = properties
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(BATCH_ROWS))
            .set_created_by(concat!("profkit ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
        let (mut file, columns) = writer.into_serialized_writer()?;
        for (group, from) in (0..batch.num_rows()).step_by(BATCH_ROWS).enumerate() {
            let rows = batch.slice(from, BATCH_ROWS.min(batch.num_rows() - from));
            let mut leaves = Vec::new();
            for (field, array) in rows.schema().fields().iter().zip(rows.columns()) {
                leaves.extend(compute_leaves(field, array)?);
            }
            let chunks = columns
                .create_column_writers(group)?
                .into_par_iter()
                .zip(leaves)
                .map(|(mut column, leaf)| {
                    column.write(&leaf)?;
                    column.close()
                })
                .collect::<Result<Vec<ArrowColumnChunk>, ParquetError>>()?;
            let mut row_group = file.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut row_group)?;
            }
            row_group.close()?;
        }
        file.close()?;
        Ok(())
    }
}

fn array(data: &ColumnData) -> Result<ArrayRef, ArrowError> {
    Ok(match data {
        ColumnData::Texts(texts) => {
            let mut rows = StringBuilder::with_capacity(texts.len(), texts.bytes());
            rows.extend(texts.iter());
            Arc::new(rows.finish())
        }
        ColumnData::Shared(texts) => {
            let keys: UInt32Array = texts
                .numbers
                .iter()
                .map(|number| number.checked_sub(1))
                .collect();
            let values = StringArray::from_iter_values(texts.texts());
            Arc::new(DictionaryArray::<UInt32Type>::try_new(
                keys,
                Arc::new(values),
            )?)
        }
        ColumnData::Numbers(numbers) => Arc::new(UInt64Array::from(numbers.clone())),
        ColumnData::SomeNumbers(numbers) | ColumnData::Hashes(numbers) => {
            Arc::new(UInt64Array::from(numbers.clone()))
        }
        ColumnData::Fractions(numbers) => Arc::new(Float64Array::from(numbers.clone())),
        ColumnData::Stacks(stacks) => stack_array(stacks),
    })
}

fn stack_array(stacks: &StackColumn) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("function", DataType::Utf8, false),
        Field::new("file", DataType::Utf8, true),
        Field::new("line", DataType::UInt32, true),
    ]);
    let item = Field::new("item", DataType::Struct(fields.clone()), false);
    let mut list = ListBuilder::new(StructBuilder::from_fields(fields, 0)).with_field(item);
    for row in 0..stacks.stacks.len() {
        for frame in stacks.get(row) {
            let frames = list.values();
            if let Some(functions) = frames.field_builder::<StringBuilder>(0) {
                functions.append_value(&frame.name);
            }
            if let Some(files) = frames.field_builder::<StringBuilder>(1) {
                files.append_option((!frame.file.is_empty()).then_some(&frame.file));
            }
            if let Some(lines) = frames.field_builder::<UInt32Builder>(2) {
                lines.append_option((frame.line > 0).then_some(frame.line));
            }
            frames.append(true);
        }
        list.append(true);
    }
    Arc::new(list.finish())
}
