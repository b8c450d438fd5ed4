//! The texts of objects that were told last: what answers a write is what watches tell of it next, and most of what the next
//! write of an object leaves alone is in the last text of it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::json::Value;
use crate::object::Object;

/// As many writes as clients have under way at once.
const REMEMBERED: usize = 64;

/// Objects and their texts, oldest first.
#[derive(Default)]
pub(crate) struct Told(Mutex<VecDeque<Telling>>);

struct Telling {
    object: Object,
    /// Without its `managedFields`.
    is_lean: bool,
    text: Bytes,
    spec: Value,
    /// Where in the text that is.
    place: Range<usize>,
}

impl Told {
    /// The text of an object, or the lean one. If it was not told lately, `write` appends it, with the text of its spec where
    /// that is known, and says where the spec is.
    pub(crate) fn text(
        &self,
        object: &Object,
        is_lean: bool,
        write: impl FnOnce(&mut Vec<u8>, Option<&[u8]>) -> Range<usize>,
    ) -> Bytes {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
