#include "remedy.h"

#include "mem.h"
#include <stdbool.h>
#include <string.h>

/* By the beginning of its path, * is any one part; what is more particular comes first. The word is
 * that with which the master's sentence begins where it is about such a thing. */
static const struct {
    const char *path, *word, *remedy;
} lists[] = {
    {"/experiments/", "experiment", "det experiment list --all shows all"},
    {"/trials/", "trial", "det experiment list-trials EXPERIMENT shows those of an experiment"},
    {"/checkpoints/", "checkpoint",
     "det experiment list-checkpoints EXPERIMENT shows those of an experiment"},
    {"/agents/*/slots/", NULL, "det slot list shows all, and their agents"},
    {"/agents/", "agent", "det agent list shows all"},
    {"/tasks/", "task", "det task list shows those that run"},
    {"/job-queues", NULL, "det job list shows those in the queue"},
    {"/jobs/", "job", "det job list shows those in the queue"},
    {"/templates/", "template", "det template list shows all"},
    {"/models/*/versions/", NULL, "det model list-versions MODEL shows those of a model"},
    {"/models/", "model", "det model list shows all"},
    {"/users/", "user", "det user list shows all"},
    {"/tokens/", "token", "det token list shows all"},
    {"/workspaces/", "workspace", "det workspace list shows all"},
};

static bool begins_as(const char *path, const char *pattern)
{
    for (; *pattern; pattern++) {
        if (*pattern == '*')
            path += strcspn(path, "/?");
        else if (*path++ != *pattern)
            return false;
    }
    return true;
}

/* Behind the names of the request and of its field. */
static const char *sentence_of(const char *said)
{
    const char *from = said;
    for (const char *p = strstr(said, ": "); p; p = strstr(p + 2, ": "))
        from = p + 2;
    return from;
}

static bool begins_with_word(const char *sentence, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(sentence, word, n) == 0 &&
           (sentence[n] == ' ' || strncmp(sentence + n, "s ", 2) == 0);
}

static const char *find_by_word(const char *sentence)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(lists); i++)
        if (lists[i].word && begins_with_word(sentence, lists[i].word))
            return lists[i].remedy;
    return NULL;
}

/* "project 9 not found": it says of what there is no list here. */
static bool names_another(const char *sentence)
{
    static const char end[] = " not found";
    const size_t n = strlen(sentence), len = sizeof end - 1;
    return n > len && strcmp(sentence + n - len, end) == 0;
}

const char *remedy_of_absent(const char *path, const char *said)
{
    size_t i = 0;
    while (i < DET_ARRAY_LEN(lists) && !begins_as(path, lists[i].path))
        i++;
    if (i == DET_ARRAY_LEN(lists) || strstr(said, "; det "))
        return NULL;
    const char *sentence = sentence_of(said);
    const char *by_word = strstr(said, "not found") ? find_by_word(sentence) : NULL;
    if (by_word)
        return by_word;
    return lists[i].word && names_another(sentence) ? NULL : lists[i].remedy;
}
