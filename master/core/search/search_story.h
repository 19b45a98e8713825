/* What a search's log tells people: its rungs, and why it was done with a trial. Pure; may run on
 * any thread, and takes as long as the search has events. */
#ifndef CORE_SEARCH_STORY_H
#define CORE_SEARCH_STORY_H

#include "search_replay.h"

/* The body of GET /experiments/{id}/rungs but for the id, with at most `most` trials of a rung. New
 * reference; NULL: err says what is wrong with the log. */
json_t *search_story_rungs(const struct search_log *log, size_t most, struct det_err *err);
/* {"text", "search"}: the trial's place in the moment in which it was closed, or now; of a search
 * that compares nothing only the text. New reference; NULL: the search did not end it, or (err) its
 * log cannot be read. */
json_t *search_story_trial(const struct search_log *log, int64_t trial_id, struct det_err *err);

#endif
