//! Deleting a model: into the Trash where there is one.
