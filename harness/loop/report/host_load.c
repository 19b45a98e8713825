/* How busy this host is, from /proc. */
#include "fsx.h"
#include "loop_profile.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PROC_MAX ((size_t)1 << 20)
#define SECTOR   512.0

static const char *next_line(const char *p)
{
    const char *end = strchr(p, '\n');
    return end && end[1] ? end + 1 : NULL;
}

/* "cpu  user nice system idle iowait irq ...": the fourth and fifth are idle. */
static void parse_cpu(const char *stat, struct host_load *r)
{
    double v[10] = {0};
    sscanf(stat, "cpu %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf", v, v + 1, v + 2, v + 3, v + 4,
           v + 5, v + 6, v + 7, v + 8, v + 9);
    for (int i = 0; i < 8; i++) /* the last two are in the first two */
        r->cpu_all += v[i];
    r->cpu_busy = r->cpu_all - v[3] - v[4];
}

static void parse_memory(const char *meminfo, struct host_load *r)
{
    const char *at = strstr(meminfo, "MemAvailable:");
    double kib = 0;
    if (at && sscanf(at, "MemAvailable: %lf kB", &kib) == 1)
        r->free_bytes = kib * 1024;
}

/* "  eth0: received packets errs drop fifo frame compressed multicast sent ..." */
static void parse_net(const char *net, struct host_load *r)
{
    for (const char *p = net; p; p = next_line(p)) {
        char name[40];
        double in, out;
        if (sscanf(p, " %39[^: \n]: %lf %*f %*f %*f %*f %*f %*f %*f %lf", name, &in, &out) != 3 ||
            strcmp(name, "lo") == 0)
            continue;
        r->net_received += in;
        r->net_sent += out;
    }
}

/* Partitions are in their disk's numbers already: sda1, vda2, nvme0n1p3. */
static bool whole_disk(const char *name)
{
    size_t n = strlen(name);
    if (strncmp(name, "nvme", 4) == 0 || strncmp(name, "mmcblk", 6) == 0)
        return !strchr(name + 4, 'p');
    return (strncmp(name, "sd", 2) == 0 || strncmp(name, "vd", 2) == 0 ||
            strncmp(name, "xvd", 3) == 0 || strncmp(name, "hd", 2) == 0) &&
           n > 0 && !isdigit((unsigned char)name[n - 1]);
}

/* "major minor name reads merged sectors ms writes merged sectors ..." */
static void parse_disks(const char *disks, struct host_load *r)
{
    for (const char *p = disks; p; p = next_line(p)) {
        char name[40];
        double reads, read_sectors, writes, written_sectors;
        if (sscanf(p, " %*d %*d %39s %lf %*f %lf %*f %lf %*f %lf", name, &reads, &read_sectors,
                   &writes, &written_sectors) != 5 ||
            !whole_disk(name))
            continue;
        r->disk_ops += reads + writes;
        r->disk_read += read_sectors * SECTOR;
        r->disk_written += written_sectors * SECTOR;
    }
}

void host_load_parse(const char *stat, const char *meminfo, const char *net, const char *disks,
                     struct host_load *ret)
{
    *ret = (struct host_load){0};
    parse_cpu(stat, ret);
    parse_memory(meminfo, ret);
    parse_net(net, ret);
    parse_disks(disks, ret);
}

void host_load_read(struct host_load *ret)
{
    static const char *const paths[] = {"/proc/stat", "/proc/meminfo", "/proc/net/dev",
                                        "/proc/diskstats"};
    struct buf text[DET_ARRAY_LEN(paths)] = {0};
    for (size_t i = 0; i < DET_ARRAY_LEN(paths); i++)
        det_ignore(fsx_read_file(AT_FDCWD, paths[i], PROC_MAX, &text[i], NULL),
                   "what cannot be read has no figures");
    host_load_parse(buf_str(&text[0]), buf_str(&text[1]), buf_str(&text[2]), buf_str(&text[3]),
                    ret);
    for (size_t i = 0; i < DET_ARRAY_LEN(paths); i++)
        buf_finish(&text[i]);
}
