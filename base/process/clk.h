/*
 * Time. Decisions use mono_ms (CLOCK_MONOTONIC since boot, ms); wall time is for people and rows
 * only. Types are plain int64_t with the unit in the name: *_ms monotonic, *_us wall since 1970.
 */
#ifndef BASE_CLK_H
#define BASE_CLK_H

#include "det/err.h"
#include <stdint.h>

int64_t clk_mono_ms(void);
int64_t clk_mono_us(void);
int64_t clk_wall_us(void);
#define CLK_RFC3339_MAX 40
/* "2023-07-06T23:56:54.311328Z" (6 digits, or none when the fraction is zero); before the year 0
 * and after 9999 the nearest time of these. */
void clk_format(int64_t wall_us, char out[CLK_RFC3339_MAX]);
DET_MUST int clk_parse(const char *rfc3339, int64_t *ret_wall_us, struct det_err *err);

#endif
