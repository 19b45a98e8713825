/* NCCL on real GPUs: one rank for each GPU (at most four) does an all-reduce; with --shared two
 * ranks share the first GPU, with --lost one waits for another that is killed before it has joined.
 * Exits with 77 (skipped) without a GPU, and where NCCL refuses to share one. */
#include "comm_device.h"
#include "ranks.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N       100003
#define REFUSED 77

static int values(struct comm_device *d, int rank, int size, float *host, float *dev)
{
    struct det_err err = {0};
    const size_t bytes = N * sizeof *host;
    for (int i = 0; i < N; i++)
        host[i] = (float)rank + (float)(i % 7);
    RANK_CHECK(cudaMemcpy(dev, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    RANK_CHECK(comm_device_allreduce_mean_f32(d, dev, N, NULL, &err) == 0);
    RANK_CHECK(comm_device_wait(d, NULL, &err) == 0);
    RANK_CHECK(cudaMemcpy(host, dev, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int i = 0; i < N; i++)
        RANK_CHECK(fabsf(host[i] - ((float)(size - 1) / 2 + (float)(i % 7))) < 1e-5f);
    return 0;
}

static int on_gpu(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    float *host = malloc(N * sizeof *host), *dev = NULL;
    o.timeout_ms = 20000;
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    bool shared = arg;
    int rc = comm_device_open(c, shared ? 0 : rank, &d, &err);
    if (rc < 0 && shared) {
        printf("skipped: rank %d: %s\n", rank, err.text);
        fflush(stdout);
        comm_close(c);
        free(host);
        return REFUSED;
    }
    RANK_CHECK(rc == 0);
    RANK_CHECK(cudaMalloc((void **)&dev, N * sizeof *host) == cudaSuccess);
    rc = values(d, rank, size, host, dev);
    comm_device_close(d);
    comm_close(c);
    free(host);
    return rc;
}

/* Rank 1 without a GPU: says what comm_device_open() has all ranks say, to the id, and is killed.
 */
static int be_lost(int rank, struct comm *c)
{
    struct det_err err = {0};
    struct comm_blobs all = {0};
    unsigned char uuid[COMM_DEVICE_UUID], id[2 * sizeof(int32_t) + COMM_DEVICE_ID_MAX];
    float cannot = 0;
    memset(uuid, 0xff, sizeof uuid);
    RANK_CHECK(comm_allreduce_mean_f32(c, &cannot, 1, &err) == 0);
    RANK_CHECK(comm_allreduce_mean_f32(c, &cannot, 1, &err) == 0);
    RANK_CHECK(comm_allgather(c, uuid, sizeof uuid, &all, &err) == 0);
    RANK_CHECK(comm_broadcast(c, id, sizeof id, 0, &err) == 0);
    raise(SIGKILL);
    return 1;
}

static int with_lost(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    struct comm *c = NULL;
    struct comm_device *d = NULL;
    struct comm_options o = ranks_options(rank, size, port);
    RANK_CHECK(comm_open(&o, &c, &err) == 0);
    if (rank == 1)
        return be_lost(rank, c);
    RANK_CHECK(comm_device_open(c, 0, &d, &err) == DET_EPEER); /* NCCL waits: DET_ETIMEOUT */
    RANK_CHECK(strstr(err.text, "rank 1 is gone") != NULL);
    comm_close(c);
    return 0;
}

static int lose_one(void)
{
    int codes[2];
    ranks_run(2, with_lost, NULL, 50000, codes);
    printf("nccl: rank 0: %d, rank 1: %d\n", codes[0], codes[1]);
    return codes[0] != 0 || codes[1] != 1000 + SIGKILL;
}

/* In a child: CUDA does not survive a fork. */
static int count_gpus(int rank, int size, int port, void *arg)
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

int main(int argc, char **argv)
{
    int codes[4], gpus, failed = 0, refused = 0;
    bool shared = argc > 1 && strcmp(argv[1], "--shared") == 0;
    ranks_run(1, count_gpus, NULL, 60000, &gpus);
    if (gpus < 1 || gpus > 255) {
        puts("skipped: no GPU");
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "--lost") == 0)
        return lose_one();
    int size = shared ? 2 : gpus > 4 ? 4 : gpus;
    ranks_run(size, on_gpu, shared ? &shared : NULL, 120000, codes);
    for (int r = 0; r < size; r++) {
        failed += codes[r] != 0;
        refused += codes[r] == REFUSED;
    }
    if (refused == size)
        return REFUSED;
    printf("nccl: %d ranks, %d failed\n", size, failed);
    return failed != 0;
}
