//! Caches the encoded text of recent objects: the response to a write is also its watch event, and the next write of an object leaves most
//! of that text unchanged.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::json::Value;
use crate::object::Object;

/// The number of writes that clients have in flight at once.
const REMEMBERED: usize = 64;

/// Objects and their encoded text, oldest first.
#[derive(Default)]
pub(crate) struct EncodeCache(Mutex<VecDeque<Telling>>);

struct Telling {
    object: Object,
    /// Without its `managedFields`.
    is_lean: bool,
    text: Bytes,
    spec: Value,
    /// The range of the spec in the text.
    place: Range<usize>,
}

impl EncodeCache {
    /// The text of an object, with or without `managedFields`. If it is not cached, `write` appends it, with the cached text of its spec if
    /// there is one, and returns the range of the spec.
    pub(crate) fn text(
        &self,
        object: &Object,
        is_lean: bool,
        write: impl FnOnce(&mut Vec<u8>, Option<&[u8]>) -> Range<usize>,
    ) -> Bytes {
        let mut told = self.0.lock();
        let is_it = |known: &&Telling| known.is_lean == is_lean && known.object.shares(object);
        if let Some(known) = told.iter().rev().find(is_it) {
            return known.text.clone();
        }
        let spec = &object["spec"];
        let same = |known: &&Telling| spec.is_object() && known.spec.shares(spec);
        let known = told
            .iter()
            .rev()
            .find(same)
            .map(|known| &known.text[known.place.clone()]);
        let mut text = Vec::with_capacity(6 * 1024);
        let place = write(&mut text, known);
        let text = Bytes::from(text);
        if told.len() == REMEMBERED {
            told.pop_front();
        }
        told.push_back(Telling {
            object: object.clone(),
            is_lean,
            text: text.clone(),
            spec: spec.clone(),
            place,
        });
        text
    }
}
