//! The texts of objects that were told last: what answers a write is what watches tell of it next.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::object::Object;

/// As many writes as clients have under way at once.
const REMEMBERED: usize = 64;

/// Objects and their texts, oldest first.
#[derive(Default)]
pub(crate) struct Told(Mutex<VecDeque<(Object, Bytes)>>);

impl Told {
    /// The text of an object, which `write` appends if it was not told lately.
    pub(crate) fn text(&self, object: &Object, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = told.iter().rev().find(|(known, _)| known.shares(object)) {
            return text.clone();
        }
        let mut text = Vec::with_capacity(4096);
        write(&mut text);
        let text = Bytes::from(text);
        if told.len() == REMEMBERED {
            told.pop_front();
        }
        told.push_back((object.clone(), text.clone()));
        text
    }
}
