/* GPUs as slots, over a fake NVML (fake_nvml.c), a fake nvidia-smi and what we say the kernel has
 * of their nodes. */
#include "slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "buf.h"
#include "fake_nvml.h"
#include "gpus.h"

/* What --slots auto finds, "ID UUID" each. */
static void expect(const char *gpus, const char *visible, const char *slots)
{
    struct slots s;
    struct det_err err;
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    gpus ? setenv("FAKE_NVML", gpus, 1) : unsetenv("FAKE_NVML");
    visible ? setenv("CUDA_VISIBLE_DEVICES", visible, 1) : unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(slots_find("auto", &s, &err), 0);
    for (size_t i = 0; i < s.v.n; i++)
        buf_addf(&b, "%s%d %s", i ? ", " : "", s.v.v[i].id,
                 s.v.v[i].type == LINK_CUDA ? s.v.v[i].uuid : "CPU");
    assert_string_equal(buf_str(&b), slots);
    slots_finish(&s);
}

static void test_a_gpu_is_a_slot(void **state)
{
    (void)state;
    expect("ww", NULL, "0 GPU-a, 1 GPU-b");
}

static void test_a_host_without_gpus_has_a_cpu_slot(void **state)
{
    (void)state;
    expect("", NULL, "0 CPU");
}

static void test_those_after_a_lost_gpu_keep_their_ids(void **state)
{
    (void)state;
    expect("wxw", NULL, "0 GPU-a, 2 GPU-c");
}

static void test_each_instance_of_a_divided_gpu_is_a_slot(void **state)
{
    (void)state;
    expect("w2w", NULL, "0 GPU-a, 1 MIG-b1, 2 MIG-b2, 3 GPU-c");
    expect("0w", NULL, "0 GPU-b"); /* nobody made instances: there is nothing to give */
}

static void test_what_the_agent_was_not_given_is_no_slot(void **state)
{
    (void)state;
    expect("wwww", "1,3", "1 GPU-b, 3 GPU-d");
    expect("wwww", "GPU-d, 0", "0 GPU-a, 3 GPU-d");
    expect("wwww", "2,-1,3", "2 GPU-c"); /* as CUDA has it: up to the first that is none */
    expect("wwww", "1x", "0 CPU");
    expect("wwww", "GPU-", "0 CPU");
    expect("wwww", "", "0 CPU");
    expect("2w", "MIG-a2", "1 MIG-a2");
    expect("2w", "0", "0 MIG-a1, 1 MIG-a2");
    expect("2w", "GPU-a", "0 MIG-a1, 1 MIG-a2");
}

/* Its thread is left behind, and ends when the driver comes back. */
static void test_a_driver_that_hangs_is_told(void **state)
{
    (void)state;
    char path[] = "/tmp/test-slots-XXXXXX";
    struct gpus g;
    struct det_err err;
    int fd = mkstemp(path), before = fake_nvml_counts.begins;
    assert_int_equal(write(fd, "a init 1\n", 9), 9);
    close(fd);
    setenv("FAKE_NVML_STATE", path, 1);
    setenv("FAKE_NVML", "w", 1);
    assert_int_equal(gpus_find(&g, 20, &err), DET_ETIMEOUT);
    assert_non_null(strstr(err.text, "the driver of the GPUs has not answered"));
    gpus_finish(&g);
    assert_int_equal(fake_nvml_counts.begins, before);
    unlink(path);
    while (fake_nvml_counts.begins == before || fake_nvml_counts.open > 0)
        usleep(1000);
    unsetenv("FAKE_NVML_STATE");
    expect("w", NULL, "0 GPU-a");
}

/* ---- neighbours ---- */

static const char *nodes; /* of the GPUs, as the kernel has them; '-': -1. NULL: it has no file */

int __real_fsx_read_file(int dirfd, const char *path, size_t bytes_max, struct buf *out,
                         struct det_err *err);
int __wrap_fsx_read_file(int dirfd, const char *path, size_t bytes_max, struct buf *out,
                         struct det_err *err);
int __wrap_fsx_read_file(int dirfd, const char *path, size_t bytes_max, struct buf *out,
                         struct det_err *err)
{
    unsigned bus;
    if (strncmp(path, "/sys/bus/pci/", strlen("/sys/bus/pci/")) != 0)
        return __real_fsx_read_file(dirfd, path, bytes_max, out, err);
    assert_int_equal(sscanf(path, "/sys/bus/pci/devices/0000:%2x:00.0/numa_node", &bus), 1);
    if (!nodes)
        return DET_ENOENT;
    char node = nodes[bus - 0x10];
    buf_addf(out, "%s%c\n", node == '-' ? "-" : "", node == '-' ? '1' : node);
    return 0;
}

/* "ID island node" of each slot, '-' for none. */
static void expect_neighbours(const char *gpus, const char *links, const char *want)
{
    struct slots s;
    struct det_err err;
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    setenv("FAKE_NVML", gpus, 1);
    links ? setenv("FAKE_NVML_LINKS", links, 1) : unsetenv("FAKE_NVML_LINKS");
    assert_int_equal(slots_find("auto", &s, &err), 0);
    for (size_t i = 0; i < s.v.n; i++) {
        const struct link_slot *v = &s.v.v[i];
        buf_addf(&b, "%s%d ", i ? ", " : "", v->id);
        v->island < 0 ? buf_add_str(&b, "- ") : buf_addf(&b, "%d ", v->island);
        v->numa < 0 ? buf_add_str(&b, "-") : buf_addf(&b, "%d", v->numa);
    }
    assert_string_equal(buf_str(&b), want);
    slots_finish(&s);
}

static void test_gpus_that_nvlink_joins_are_an_island(void **state)
{
    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    nodes = NULL;
    expect_neighbours("wwww", NULL, "0 - -, 1 - -, 2 - -, 3 - -");
    expect_neighbours("wwwww", "ac bd", "0 0 -, 1 1 -, 2 0 -, 3 1 -, 4 - -");
    expect_neighbours("wwww", "ad bc cd", "0 0 -, 1 0 -, 2 0 -, 3 0 -"); /* by way of others */
    expect_neighbours("wxww", "abcd", "0 0 -, 2 0 -, 3 0 -");
    expect_neighbours("w2w", "abc", "0 0 -, 1 - -, 2 - -, 3 0 -"); /* none for MIG instances */
    setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
    expect_neighbours("wwww", "abcd", "2 0 -, 3 0 -"); /* also through those that are hidden */
    unsetenv("CUDA_VISIBLE_DEVICES");
    expect_neighbours("", NULL, "0 - -");
}

static void test_the_kernel_knows_the_node_of_a_gpu(void **state)
{
    (void)state;
    nodes = "01-";
    expect_neighbours("www", NULL, "0 - 0, 1 - 1, 2 - -");
    expect_neighbours("w2w", NULL, "0 - 0, 1 - 1, 2 - 1, 3 - -");
}

static void make_smi(const char *dir, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/nvidia-smi", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n[ \"$*\" = -L ] || exit 1\ncat <<'END'\n%s\nEND\n", text);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

static void test_nvidia_smi_tells_where_nvml_is_absent(void **state)
{
    (void)state;
    char dir[] = "/tmp/test-slots-XXXXXX", path[512], before[4096];
    assert_non_null(mkdtemp(dir));
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", dir);
    setenv("PATH", path, 1);
    make_smi(dir, "GPU 0: NVIDIA H200 (UUID: GPU-a)\n"
                  "GPU 1: NVIDIA H200 (UUID: GPU-b)\n"
                  "  MIG 1g.18gb     Device  0: (UUID: MIG-b1)\n"
                  "  MIG 3g.71gb     Device  1: (UUID: MIG-b2)\n"
                  "GPU 2: NVIDIA H200 (UUID: GPU-c)");
    expect(NULL, NULL, "0 GPU-a, 1 MIG-b1, 2 MIG-b2, 3 GPU-c");
    expect(NULL, "1", "1 MIG-b1, 2 MIG-b2");
    make_smi(dir,
             "  MIG 1g.18gb     Device  0: (UUID: MIG-b1)\nGPU x: (UUID: \nGPU 1 (UUID: GPU-b)");
    expect(NULL, NULL, "0 CPU");
    snprintf(path, sizeof path, "%s/nvidia-smi", dir);
    unlink(path);
    rmdir(dir);
    setenv("PATH", before, 1);
}

static void test_an_instance_has_its_gpus_name_and_its_profile(void **state)
{
    (void)state;
    struct slots s;
    struct det_err err;
    setenv("FAKE_NVML", "1", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_int_equal(slots_find("auto", &s, &err), 0);
    assert_string_equal(s.v.v[0].brand, "Fake H200 MIG 1g.18gb");
    slots_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gpu_is_a_slot),
        cmocka_unit_test(test_a_host_without_gpus_has_a_cpu_slot),
        cmocka_unit_test(test_those_after_a_lost_gpu_keep_their_ids),
        cmocka_unit_test(test_each_instance_of_a_divided_gpu_is_a_slot),
        cmocka_unit_test(test_what_the_agent_was_not_given_is_no_slot),
        cmocka_unit_test(test_a_driver_that_hangs_is_told),
        cmocka_unit_test(test_nvidia_smi_tells_where_nvml_is_absent),
        cmocka_unit_test(test_gpus_that_nvlink_joins_are_an_island),
        cmocka_unit_test(test_the_kernel_knows_the_node_of_a_gpu),
        cmocka_unit_test(test_an_instance_has_its_gpus_name_and_its_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
