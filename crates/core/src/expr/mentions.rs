//! Finds the tokens that an expression uses, whatever their meaning.

use super::lexer::lex;
use super::token::Kind;

/// Whether an expression contains one of these names or signs. Text in quotes does not count.
pub fn mentions(source: &str, words: &[&str]) -> bool {
    let tokens = lex(source).unwrap_or_default();
    tokens.iter().any(|token| match &token.kind {
        Kind::Name(name) => words.contains(&name.as_str()),
        Kind::Operator(sign) => words.contains(sign),
        Kind::Number(_) | Kind::Text(_) | Kind::Bracket(_) | Kind::End => false,
    })
}

/// Whether an expression uses the length of some part of the answer: `len(result.errors)`.
pub fn measures_any(source: &str) -> bool {
    let tokens = lex(source).unwrap_or_default();
    let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    let plain = words.windows(3).any(|words| words == ["len", "(", "result"]);
    plain || words.windows(3).any(|words| words == ["|", "len", "("])
}

/// Whether an expression uses the length of the answer itself: `len(result)`, or `result | len()`.
pub fn measures_result(source: &str) -> bool {
    let tokens = lex(source).unwrap_or_default();
    let words: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    words
        .windows(4)
        .any(|words| words == ["len", "(", "result", ")"] || words == ["result", "|", "len", "("])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("len(result) == 0 || result[0] < 1", true)]
    #[case("result | len() > 0", true)]
    #[case("len(filter(result, # > 5)) == 0", false)]
    #[case("result[0] > 1 && \"len(result)\" != \"\"", false)]
    fn only_the_length_of_the_answer_itself_counts(#[case] source: &str, #[case] expected: bool) {
        assert_eq!(measures_result(source), expected);
    }
}
