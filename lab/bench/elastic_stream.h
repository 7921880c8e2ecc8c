/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from the peers of `bench elastic`, whole. */
#ifndef AQ_BENCH_ELASTIC_STREAM_H
#define AQ_BENCH_ELASTIC_STREAM_H

#include "base/base.h"

enum {
	ELASTIC_LINE = 64,
};

int elastic_stream_write(int fd, const void *data, size_t bytes) MUST_CHECK;
int elastic_stream_read(int fd, void *data, size_t bytes) MUST_CHECK;
/* A line of an answer without its end, "\r\n"; byte by byte, as there are few.
 */
int elastic_stream_line(int fd, char line[ELASTIC_LINE]) MUST_CHECK;

#endif
