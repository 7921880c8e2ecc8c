/* SPDX-License-Identifier: Apache-2.0 */
/* A number of bytes as people write it, in messages and tables. */
#ifndef AQ_SIZE_H
#define AQ_SIZE_H

#include "base.h"

struct size_text {
	char text[16];
};

/* 64M, 1.5G, 900B: up to one decimal, in powers of 1024. */
struct size_text size_text(uint64_t bytes);

/* For an argument of a function like printf: it lives as long as the call. */
#define SIZE_TEXT(bytes) (size_text(bytes).text)

#endif
