"""Write the ROOT files beside this script with ROOT itself: `pip install ROOT`, then run it.

They were written by ROOT 6.40.00. Entry i has i % 4 candidates, of which k has pt = i + k/8.
"""

from __future__ import annotations

import os
from pathlib import Path

import ROOT  # type: ignore[import-not-found]

CODE = r"""
void write(const char* path, int compression, int layout) {
    TFile file(path, "RECREATE", "", compression);
    file.mkdir("Hlt")->cd();
    TTree tree("Candidates", "candidates");
    UInt_t run; ULong64_t event; Short_t charge; Bool_t ok; Double_t mass; Int_t n;
    Float_t pt[4]; Double_t ip[4];
    std::vector<float> vector_pt; std::vector<double> vector_ip;
    tree.Branch("run", &run, "run/i");
    tree.Branch("event", &event, "event/l");
    tree.Branch("charge", &charge, "charge/S");
    tree.Branch("ok", &ok, "ok/O");
    tree.Branch("mass", &mass, "mass/D");
    if (layout == 0) {
        tree.Branch("n", &n, "n/I");
        tree.Branch("pt", pt, "pt[n]/F");
        tree.Branch("ip", ip, "ip[n]/D");
    } else if (layout == 1) {
        tree.Branch("pt", &vector_pt);
        tree.Branch("ip", &vector_ip);
    } else {
        tree.Branch("pt", pt, "pt[2]/F");
        tree.Branch("ip", ip, "ip[2]/D");
    }
    for (int i = 0; i < 40; ++i) {
        run = 300000 + i % 3; event = (1ULL << 40) + i; charge = i % 2 ? -1 : 1; ok = i % 2;
        mass = 5.0 + i / 64.0; n = i % 4;
        vector_pt.clear(); vector_ip.clear();
        for (int k = 0; k < 4; ++k) {
            pt[k] = i + k / 8.0f; ip[k] = 2.0 * pt[k];
            if (k < n) { vector_pt.push_back(pt[k]); vector_ip.push_back(ip[k]); }
        }
        tree.Fill();
    }
    tree.Write();
}
"""

COMPRESSIONS = {"leaves": 101, "vectors": 207, "fixed": 404}  # zlib, LZMA, LZ4


def main() -> None:
    os.chdir(Path(__file__).parent)  # since files hold the path that they were written with
    ROOT.gInterpreter.Declare(CODE)
    for layout, (name, compression) in enumerate(COMPRESSIONS.items()):
        ROOT.write(f"{name}.root", compression, layout)
    options = ROOT.RDF.RSnapshotOptions()
    frame = ROOT.RDataFrame("Hlt/Candidates", "vectors.root")
    frame.Snapshot("Candidates", "snapshot.root", "", options)
    options.fOutputFormat = ROOT.RDF.ESnapshotOutputFormat.kRNTuple
    frame.Snapshot("Candidates", "rntuple.root", "", options)


if __name__ == "__main__":
    main()
