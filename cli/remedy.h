/* What a person does about an answer that helps only a program. Pure. */
#ifndef CLI_REMEDY_H
#define CLI_REMEDY_H

/* Of a request for something that is not there: the command that shows what is. NULL: none does.
 * path begins behind /api/v1. */
const char *remedy_of_absent(const char *path);

#endif
