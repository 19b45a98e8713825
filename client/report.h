/* What a report to the master is, and what an answer says of it: for the rank that sends it, and
 * for det-task, which sends what ranks left. */
#ifndef REPORT_H
#define REPORT_H

enum report_kind { REPORT_OTHER, REPORT_METRICS, REPORT_PROGRESS, REPORT_STATE };
/* Of a call that the spool keeps. */
enum report_kind report_kind(const char *method, const char *path);

enum report_answer {
    REPORT_SENT,
    REPORT_DROPPED, /* it only informs, and the master knows nothing of its trial any more */
    REPORT_AGAIN,   /* for as long as there is time */
    REPORT_FAULT,   /* likewise a few times: if it stays, it is the report's */
    REPORT_REFUSED  /* and will be whenever it comes */
};
/* status 0: none came. */
enum report_answer report_answer(enum report_kind kind, int status);

#endif
