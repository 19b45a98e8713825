/* The statuses of cuDNN 8 and 9 by their documented numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda_status.h"

static void of_cudnn_8(void **state)
{
    (void)state;
    assert_true(cuda_status_refused(9, 9));
    for (int other = 0; other < 16; other++) /* 0: success, 8: the execution failed */
        if (other != 9)
            assert_false(cuda_status_refused(other, 9));
}

static void of_cudnn_9(void **state)
{
    (void)state;
    assert_true(cuda_status_refused(3000, 3000));
    assert_true(cuda_status_refused(3004, 3000)); /* with a reason */
    const int others[] = {0, 9, 1001, 2000, 2999, 4000, 5000};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(cuda_status_refused(others[i], 3000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_cudnn_8),
        cmocka_unit_test(of_cudnn_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
