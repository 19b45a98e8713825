#include "rows.h"

#include <stddef.h>
#include <string.h>

#define X(name, text) [name] = text,
static const char *const exp_names[EXP_STATE_COUNT] = {EXP_STATES(X)};
static const char *const trial_names[TRIAL_STATE_COUNT] = {TRIAL_STATES(X)};
static const char *const alloc_names[ALLOC_STATE_COUNT] = {ALLOC_STATES(X)};
#undef X

static bool find_name(const char *const *names, int n, const char *text, int *ret)
{
    for (int i = 0; text && i < n; i++)
        if (strcmp(names[i], text) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

const char *exp_state_text(enum exp_state s)
{
    return exp_names[s];
}

const char *trial_state_text(enum trial_state s)
{
    return trial_names[s];
}

const char *alloc_state_text(enum alloc_state s)
{
    return alloc_names[s];
}

bool exp_state_parse(const char *text, enum exp_state *ret)
{
    int i;
    bool found = find_name(exp_names, EXP_STATE_COUNT, text, &i);
    if (found)
        *ret = (enum exp_state)i;
    return found;
}

bool trial_state_parse(const char *text, enum trial_state *ret)
{
    int i;
    bool found = find_name(trial_names, TRIAL_STATE_COUNT, text, &i);
    if (found)
        *ret = (enum trial_state)i;
    return found;
}

bool exp_state_is(const char *text, enum exp_state s)
{
    return strcmp(text, exp_names[s]) == 0;
}

bool trial_state_is(const char *text, enum trial_state s)
{
    return strcmp(text, trial_names[s]) == 0;
}

bool alloc_state_parse(const char *text, enum alloc_state *ret)
{
    int i;
    bool found = find_name(alloc_names, ALLOC_STATE_COUNT, text, &i);
    if (found)
        *ret = (enum alloc_state)i;
    return found;
}

bool exp_state_is_terminal(enum exp_state s)
{
    return s == EXP_COMPLETED || s == EXP_CANCELED || s == EXP_ERROR || s == EXP_DELETED ||
           s == EXP_DELETING || s == EXP_DELETE_FAILED;
}

bool trial_state_is_terminal(enum trial_state s)
{
    return s == TRIAL_COMPLETED || s == TRIAL_CANCELED || s == TRIAL_ERROR;
}
