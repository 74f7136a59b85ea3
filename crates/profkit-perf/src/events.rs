//! The events of a recording. Finds the event to which a sample belongs.
use crate::file::{Attr, Features, Head, sample_type};
use crate::limits;
use crate::losses::Losses;
use crate::record::{Record, RecordKind};
use crate::sample::{Plan, Sample};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::{Error, ErrorKind, Result, Structure};
use rustc_hash::FxHashMap;

/// An event of a recording, with its attributes and its ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name of the event in the recording. If the recording has no name for it, the result of [`Attr::name`]. The
    /// name may contain any text of the file.
    pub name: String,
    /// The attributes, which state what the event counts and what its samples contain.
    pub attr: Attr,
    /// The ids of the event. A sample contains the id of its event.
    pub ids: Vec<u64>,
}

/// The events of a recording.
#[derive(Clone, Debug)]
pub struct Events {
    list: Vec<Event>,
    plans: Vec<Plan>,
    by_id: FxHashMap<u64, usize>,
    /// The position of the event's id in every sample. `None` if ids are not used; then each sample counts as a sample
    /// of the first event.
    id_place: Option<usize>,
    endian: Endian,
}

impl Event {
    /// Reads an event and its ids from a record `ATTR`.
    pub(crate) fn of_record(body: &[u8], endian: Endian) -> Result<Event> {
        let mut cursor = Cursor::new(body, 0, endian);
        let (attr, _) = Attr::parse(&mut cursor)?;
        Ok(Event {
            name: String::new(),
            attr,
            ids: ids(&mut cursor)?,
        })
    }
}

fn ids(cursor: &mut Cursor<'_>) -> Result<Vec<u64>> {
    let mut ids = Vec::with_capacity(cursor.remaining() / 8);
    while cursor.remaining() >= 8 {
        ids.push(cursor.u64()?);
    }
    Ok(ids)
}

/// Reads the table of events of a file.
pub(crate) fn of_file(data: &[u8], head: &Head<'_>) -> Result<Vec<Event>> {
    let error = |error: Error| {
        error
            .within(Structure::EventTable)
            .within(Structure::Recording)
    };
    let mut table = Cursor::new(head.attrs.bytes, head.attrs.offset, head.endian);
    let mut list = Vec::new();
    // At the end of an entry is the position of the section with the event's ids.
    let attr_size = head.attr_entry.checked_sub(16).filter(|&size| size >= 64);
    let Some(attr_size) = attr_size else {
        return Err(error(
            Error::new(
                ErrorKind::BadHeader,
                "the size of the entries in the table of events is wrong",
            )
            .at(16)
            .found(head.attr_entry)
            .expected("80 bytes or more"),
        ));
    };
    while !table.is_empty() && list.len() < limits::EVENTS {
        let mut entry = table.window(attr_size).map_err(error)?;
        let (attr, _) = Attr::parse(&mut entry).map_err(error)?;
        let place = table.u64().and_then(|offset| Ok((offset, table.u64()?)));
        let (offset, size) = place.map_err(error)?;
        let section = crate::file::section(data, offset, size);
        let mut cursor = Cursor::new(section.bytes, section.offset, head.endian);
        list.push(Event {
            name: String::new(),
            attr,
            ids: ids(&mut cursor).map_err(error)?,
        });
    }
    Ok(list)
}

impl Events {
    /// Determines the names of the events, and how the event of a sample is found.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if there is no event, [`ErrorKind::Unsupported`] if the samples of the events have
    /// different parts and contain no id of their event.
    pub(crate) fn new(
        mut list: Vec<Event>,
        names: &FxHashMap<u64, &[u8]>,
        features: &Features<'_>,
        endian: Endian,
    ) -> Result<Events> {
        if list.is_empty() {
            return Err(
                Error::new(ErrorKind::Malformed, "the recording has no event")
                    .within(Structure::EventTable)
                    .within(Structure::Recording)
                    .with_hint("nothing in it can be read without one; record again"),
            );
        }
        // The table of names in the recording has the events in the same order as the header. Its entry is used for the
        // event with the same index, but only if both have the same kind of event, or an id in common.
        for (index, event) in list.iter_mut().enumerate() {
            let described = features.events.get(index).filter(|(attr, ids, _)| {
                (attr.kind, attr.config) == (event.attr.kind, event.attr.config)
                    || ids.first().is_some_and(|id| event.ids.contains(id))
            });
            if event.ids.is_empty()
                && let Some((_, ids, _)) = described
            {
                event.ids.clone_from(ids);
            }
            let updated = event.ids.iter().find_map(|id| names.get(id)).copied();
            let name = updated.or(described.map(|(_, _, name)| *name));
            event.name = match name {
                Some(name) if !name.is_empty() => String::from_utf8_lossy(name).into_owned(),
                _ => event.attr.name(),
            };
        }
        let plans: Vec<Plan> = list
            .iter()
            .map(|event| Plan::of(&event.attr, endian))
            .collect();
        let mut by_id = FxHashMap::default();
        for (index, event) in list.iter().enumerate() {
            for &id in &event.ids {
                by_id.entry(id).or_insert(index);
            }
        }
        let mut events = Events {
            id_place: plans.first().and_then(|plan| plan.id),
            list,
            plans,
            by_id,
            endian,
        };
        events.choose()?;
        Ok(events)
    }

    /// Decides whether the id of a sample must be read to find its event, and checks that the id has the same position
    /// in the samples of all events.
    fn choose(&mut self) -> Result<()> {
        let Some((first, others)) = self.list.split_first() else {
            return Ok(());
        };
        if others.is_empty() {
            self.id_place = None;
            return Ok(());
        }
        let one_place = self.plans.iter().all(|plan| plan.id == self.id_place)
            && self.list.iter().all(|event| {
                event.attr.has(sample_type::IDENTIFIER) == first.attr.has(sample_type::IDENTIFIER)
            });
        if one_place && self.id_place.is_some() {
            return Ok(());
        }
        self.id_place = None;
        if others
            .iter()
            .all(|event| event.attr.same_layout(&first.attr))
        {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            "the events of the recording use different forms of samples, and the samples have no id that names their event",
        )
        .within(Structure::EventTable)
        .within(Structure::Recording)
        .with_hint("record each event on its own, or with `perf record --sample-identifier`"))
    }

    /// The events, in the order of the file.
    pub fn list(&self) -> &[Event] {
        &self.list
    }

    /// Decodes a sample.
    pub(crate) fn decode<'data>(
        &self,
        record: &Record<'data>,
        losses: &mut Losses,
    ) -> Option<Sample<'data>> {
        debug_assert_eq!(record.kind, RecordKind::SAMPLE);
        let index = match self.id_place {
            None => 0,
            Some(place) => {
                let Some(id) = record.body.get(place..).and_then(|body| body.first_chunk()) else {
                    losses.damaged_samples += 1;
                    return None;
                };
                let id = self.endian.u64(*id);
                match self.by_id.get(&id) {
                    Some(&index) => index,
                    // perf assigns samples without an id to the first event.
                    None if id == 0 || self.by_id.is_empty() => 0,
                    None => {
                        losses.unknown_event += 1;
                        return None;
                    }
                }
            }
        };
        let sample = self.plans.get(index)?.decode(record, index);
        losses.damaged_samples += u64::from(sample.is_none());
        let mut sample = sample?;
        if sample.period == 0
            && let Some(event) = self.list.get(index)
            && !event.attr.has(sample_type::PERIOD)
            && !event.attr.by_frequency
        {
            sample.period = event.attr.period;
        }
        Some(sample)
    }

    /// Returns the layout of the block of ids at the end of a record that is not a sample. If there are several events,
    /// the identifier at the end of the record selects the event. `None` if the record is too short.
    pub(crate) fn block(&self, body: &[u8]) -> Option<&Plan> {
        let first = self.plans.first()?;
        let attr = &self.list.first()?.attr;
        if self.plans.len() == 1 || !attr.has(sample_type::IDENTIFIER) {
            return Some(first);
        }
        let id = body.len().checked_sub(8)?;
        let id = self.endian.u64(*body.get(id..)?.first_chunk()?);
        match self.by_id.get(&id) {
            Some(&index) => self.plans.get(index),
            None => Some(first),
        }
    }
}
