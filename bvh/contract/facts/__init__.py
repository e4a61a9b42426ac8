"""The rows of the ledger, by what they are about; `bvh.contract.ledger` reads them."""
