#include "remedy.h"

#include "mem.h"
#include <stdbool.h>
#include <string.h>

/* By the beginning of its path, * is any one part; what is more particular comes first. */
static const char *const lists[][2] = {
    {"/experiments/", "det experiment list --all shows all"},
    {"/trials/", "det experiment list-trials EXPERIMENT shows those of an experiment"},
    {"/checkpoints/", "det experiment list-checkpoints EXPERIMENT shows those of an experiment"},
    {"/agents/*/slots/", "det slot list shows all, and their agents"},
    {"/agents/", "det agent list shows all"},
    {"/tasks/", "det task list shows those that run"},
    {"/job-queues", "det job list shows those in the queue"},
    {"/jobs/", "det job list shows those in the queue"},
    {"/templates/", "det template list shows all"},
    {"/models/*/versions/", "det model list-versions MODEL shows those of a model"},
    {"/models/", "det model list shows all"},
    {"/users/", "det user list shows all"},
    {"/tokens/", "det token list shows all"},
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

const char *remedy_of_absent(const char *path)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(lists); i++)
        if (begins_as(path, lists[i][0]))
            return lists[i][1];
    return NULL;
}
