/* Why a search was done with a trial, for who answers about the trial. */
#ifndef API_API_RUNGS_H
#define API_API_RUNGS_H

#include "http.h"
#include "json.h"

/* Answers with blank (taken), to which the search's reason is added if it has one. */
void rungs_tell_trial(struct shell *sh, struct http_req *req, int64_t exp_id, int64_t trial_id,
                      json_t *blank);

#endif
