/* SPDX-License-Identifier: Apache-2.0 */
/* The one table from completion status to -errno. */
#include <errno.h>

#include "client_priv.h"
#include "link.h"

int client_wc_errno(enum ibv_wc_status status)
{
	switch ((int)status) {
	case IBV_WC_SUCCESS:
		return 0;
	/* Bounds and rights were checked here, so the key itself is dead. */
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_MW_BIND_ERR:
		return -ESTALE;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return -EHOSTDOWN;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
	case IBV_WC_BAD_RESP_ERR:
	case IBV_WC_GENERAL_ERR:
		return -EREMOTEIO;
	default:
		return -EIO; /* a local fault */
	}
}

bool client_wc_is_silence(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ||
	       status == IBV_WC_RESP_TIMEOUT_ERR;
}
