//! What the model is told.

use crate::{calls::Surroundings, marking::RULE, text_choice::Route};

/// Behind the question for a route that was not answered with one word.
pub(super) const ONE_WORD: &str = "\nThe last answer could not be read. Write exactly one of these words, without any other text.";

/// In place of what an act would have found.
pub(super) const REFUSED: &str = "The user does not allow this. Do not try to reach the same in another way; go on without it, or say what is missing.";

pub(super) fn system(surroundings: &Surroundings) -> String {
    let mut prompt = "You help the user on their own computer. Work in small steps: look first, then act. Say what you found, \
and not that you will look.\n"
        .to_owned();
    if let Some(folder) = &surroundings.folder {
        prompt += &format!(
            "Files and commands are those of the folder {}, and nothing outside of it. Commands run in a sandbox without the network.\n",
            folder.display()
        );
    }
    if surroundings.documents.is_some() {
        prompt.push_str(
            "Where you use a passage of the user's documents, cite its number, such as [2].\n",
        );
    }
    prompt.push_str(RULE);
    prompt
}

/// The question for the line of a route.
pub(super) fn route_line(route: Route) -> &'static str {
    match route {
        Route::Search => {
            "Write the words to search for, or the address of one page to open. One line, nothing else."
        }
        Route::Shell => "Write one line of shell that does the next step. One line, nothing else.",
        Route::Files => {
            "Write one line: read, list or write, and behind it the path of the file or folder. After write, the whole content of the file follows on the next lines."
        }
        Route::Documents => {
            "Write the question to look up in the documents. One line, nothing else."
        }
        Route::Chat => "Answer the user.",
    }
}

/// The last request, once a limit is reached.
pub(super) fn answer_now(limit: &str) -> String {
    format!(
        "The limit of {limit} is reached, and no more steps are possible. Answer with what was found, and say what is missing."
    )
}
