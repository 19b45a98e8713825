/* Which calls are reports of what, and what answers mean for them. */
#include "mem.h"
#include "report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void calls_are_known_by_their_whole_path(void **state)
{
    static const struct {
        const char *method, *path;
        enum report_kind kind;
    } calls[] = {
        {"POST", "/api/v1/trials/7/metrics", REPORT_METRICS},
        {"POST", "/api/v1/trials/7/progress", REPORT_PROGRESS},
        {"POST", "/api/v1/trials/70/runner/metadata", REPORT_STATE},
        {"GET", "/api/v1/trials/7/metrics", REPORT_OTHER},
        {"POST", "/api/v1/trials/7/metrics/batch", REPORT_OTHER},
        {"POST", "/api/v1/trials/x/metrics", REPORT_OTHER},
        {"POST", "/api/v1/trials//metrics", REPORT_OTHER},
        {"POST", "/api/v1/trials/7", REPORT_OTHER},
        {"POST", "/api/v1/checkpoints/progress", REPORT_OTHER},
        {"POST", "/api/v1/allocations/1.a.1/progress/runner/metadata", REPORT_OTHER},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(calls); i++)
        assert_int_equal(report_kind(calls[i].method, calls[i].path), calls[i].kind);
}

static void answers_are_of_five_kinds(void **state)
{
    static const struct {
        int status;
        enum report_answer answer;
    } all[] = {{200, REPORT_SENT},    {204, REPORT_SENT},    {0, REPORT_AGAIN},
               {408, REPORT_AGAIN},   {429, REPORT_AGAIN},   {502, REPORT_AGAIN},
               {503, REPORT_AGAIN},   {504, REPORT_AGAIN},   {500, REPORT_FAULT},
               {501, REPORT_FAULT},   {505, REPORT_FAULT},   {599, REPORT_FAULT},
               {302, REPORT_REFUSED}, {400, REPORT_REFUSED}, {401, REPORT_REFUSED},
               {404, REPORT_REFUSED}, {409, REPORT_REFUSED}, {413, REPORT_REFUSED}};
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++) {
        assert_int_equal(report_answer(REPORT_METRICS, all[i].status), all[i].answer);
        assert_int_equal(report_answer(REPORT_OTHER, all[i].status), all[i].answer);
        assert_int_equal(report_answer(REPORT_STATE, all[i].status),
                         all[i].status == 404 ? REPORT_DROPPED : all[i].answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_known_by_their_whole_path),
        cmocka_unit_test(answers_are_of_five_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
