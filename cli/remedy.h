/* What a person does about an answer that helps only a program. Pure. */
#ifndef CLI_REMEDY_H
#define CLI_REMEDY_H

/* Of a request for something that is not there: the command that shows what is. NULL: none does, or
 * the answer says it. path begins behind /api/v1; said is the answer, which may be about another
 * thing than the path: a checkpoint that is to become a model's version. */
const char *remedy_of_absent(const char *path, const char *said);

#endif
